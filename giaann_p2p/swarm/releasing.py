"""When deltas need not be kept any longer: once nobody is left who could lack them.

Who lacks a chunk whose delta nobody keeps takes a whole shard instead, to which only those chunks
can be added that are here as deltas. So of any two replicas, one must have all that the other has
without deltas: else the two could never be brought together again. That holds because a replica
lets go only of what all others have that might let go of anything themselves, or send what they
hold as a whole to somebody:

- What a replica said once counts for ever. It may have lost all since, or gone back to what it had
  before; then it is one that takes a whole shard.
- One that had nothing a moment ago takes a whole shard, too, and need not be waited for: no delta
  would ever be let go of where peers come and go all the time. Two replicas must not think so of
  each other, and each let go of what the other lacks. So only one lets go that has had something
  for longer than two such moments.
- What arrived whole in that moment came from a third, who had said by then that it has it. So
  nothing is let go of while somebody has what is not here.
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
        self._filled: dict[int, float] = {}
        """Since when a shard has something, as far as was looked."""

    def due(self, now: float) -> list[Action]:
        """Release what need not be kept, now and then."""
        if now - self._looked < self._settings.release_every:
            return []
        self._looked = now
        held = self._held.sets(self._replicas.held.tolist())
        self._filled = {shard: self._filled.get(shard, now) for shard, mine in held.items() if mine}
        alike: dict[bytes, tuple[Applied, list[int]]] = {}  # most shards have the same chunks
        for shard, mine in held.items():
            chunks = self._everywhere(shard, mine, now)
            if chunks:
                alike.setdefault(chunks.digest, (chunks, []))[1].append(shard)
        return [Release(np.array(shards, np.uint16), chunks) for chunks, shards in alike.values()]

    def _everywhere(self, shard: int, mine: Applied, now: float) -> Applied:
        claiming = self._others.witnesses(shard, now)
        witnesses = {*claiming, *self._replicas.owners(shard)} - {self._replicas.me}
        self._evidence.keep(shard, witnesses)
        moment = self._settings.word_counts
        filled = max(self._filled.get(shard, now), self._replicas.held_since(shard))
        if now - filled <= 2 * moment:
            return Applied()
        told = [self._evidence.of(peer, shard) for peer in sorted(witnesses)]
        return everywhere(mine, told, now - moment)
