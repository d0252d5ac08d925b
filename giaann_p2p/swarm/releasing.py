"""When deltas need not be kept any longer: once nobody is left who could lack them.

Who lacks a chunk whose delta nobody keeps takes a whole shard instead, to which only those chunks
can be added that are here as deltas. So of any two replicas, one must have all that the other has
without deltas: else the two could never be brought together again. A replica that is ready lets go
of what all others are known to have, and that is so:

- What a replica said once counts for ever. It may have lost all since, or gone back to what it had
  before; then it takes a whole shard.
- One that said a moment ago that it has nothing yet will take a whole shard, too: it is not waited
  for, or no delta would ever be let go of where peers come and go all the time. Two replicas must
  not think so of each other, and each let go of what the other lacks. So only one that has been
  ready for longer than two such moments lets go: by then nobody has such a word of it any longer.
- One that drains is kept up with the others until it has seen that they hold the shard (see
  `Proving`), so it is waited for like any other.
- What came whole in that moment came from a third that is waited for, and that is known to have
  what is let go of here. So nothing is let go of while somebody has what is not here.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm import comparing
from giaann_p2p.swarm.actions import Action, Release
from giaann_p2p.swarm.comparing import Held
from giaann_p2p.swarm.evidence import Evidence
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.judgement import everywhere
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.replicas import Replicas
from giaann_p2p.swarm.settings import Settings


class Others(comparing.Others, Protocol):
    """What is known of the other peers; see `Surroundings`."""

    def witnesses(self, shard: int, now: float) -> Sequence[Peer]:
        """Return those that hold a shard, or may come back and hold it."""
        ...


class Releasing:
    """See the module."""

    def __init__(
        self,
        settings: Settings,
        replicas: Replicas,
        others: Others,
        held: Held,
        evidence: Evidence,
        now: float,
    ) -> None:
        self._settings, self._replicas, self._others = settings, replicas, others
        self._held, self._evidence = held, evidence
        self._looked = now

    def due(self, now: float) -> list[Action]:
        """Release what need not be kept, now and then."""
        if now - self._looked < self._settings.release_every:
            return []
        self._looked = now
        held = self._held.sets(self._replicas.held.tolist())
        alike: dict[bytes, tuple[Applied, list[int]]] = {}  # most shards have the same chunks
        for shard, mine in held.items():
            chunks = self._everywhere(shard, mine, now)
            if chunks:
                alike.setdefault(chunks.digest, (chunks, []))[1].append(shard)
        parts = [(np.array(shards, np.uint16), chunks) for chunks, shards in alike.values()]
        return [Release(parts)] if parts else []

    def _everywhere(self, shard: int, mine: Applied, now: float) -> Applied:
        claiming = self._others.witnesses(shard, now)
        witnesses = {*claiming, *self._replicas.owners(shard)} - {self._replicas.me}
        self._evidence.keep(shard, witnesses)
        moment = self._settings.word_counts
        if not self._is_ready_for(shard, 2 * moment, now):
            return Applied()
        told = [self._evidence.of(peer, shard) for peer in sorted(witnesses)]
        return everywhere(mine, told, now - moment)

    def _is_ready_for(self, shard: int, seconds: float, now: float) -> bool:
        is_ready = self._replicas.state(shard) is State.READY
        return is_ready and self._replicas.unchanged_for(shard, now) > seconds
