"""Decides when a delta may be released: once no replica is left that could lack its chunk.

A replica that lacks a chunk whose delta no peer keeps must take a whole shard instead, and can then
re-apply only the chunks whose deltas it keeps. So of any two replicas, one must have every chunk
that the other holds without a delta; otherwise the two could never be merged again. A ready replica
releases the deltas of the chunks that all other replicas are known to have. This is safe:

- A report counts for ever. A replica may since have lost everything, or rolled back; then it takes
  a whole shard.
- A replica that recently reported that it holds nothing yet will take a whole shard, too. Release
  does not wait for it: under constant churn no delta would ever be released. Two replicas must not
  both regard each other as empty and release what the other lacks. So a replica releases only once
  it has been ready for more than twice `word_counts`: by then no such report of it is recent.
- A draining replica is kept up to date until the others have proved that they hold the shard (see
  `HandoverProof`), so release waits for it like for any other.
- A whole shard taken meanwhile came from a third replica, which release waits for and which is
  known to have the chunks released here. So nothing is released while any replica has a chunk
  missing here.
"""

import numpy as np

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.coverage import everywhere
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.actions import Action, Release
from giaann_p2p.swarm.wire.replica import ReplicaState


class DeltaRelease:
    """Decides every `release_every` seconds which deltas of this peer's shards to release."""

    def __init__(self, shared: Shared) -> None:
        self._settings, self._replicas = shared.settings, shared.replicas
        self._others, self._held, self._reports = shared.others, shared.held, shared.reports
        self._looked = shared.begun

    def due(self, now: float) -> list[Action]:
        """Release the deltas that no replica can need, if a check is due."""
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
        self._reports.keep(shard, witnesses)
        moment = self._settings.word_counts
        if not self._is_ready_for(shard, 2 * moment, now):
            return Applied()
        told = [self._reports.of(peer, shard) for peer in sorted(witnesses)]
        return everywhere(mine, told, now - moment)

    def _is_ready_for(self, shard: int, seconds: float, now: float) -> bool:
        is_ready = self._replicas.state(shard) is ReplicaState.READY
        return is_ready and self._replicas.unchanged_for(shard, now) > seconds
