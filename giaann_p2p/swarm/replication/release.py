"""Decides when an owner may release a delta: once every other replica is known to have its chunk.

If a replica lacks a chunk whose delta no peer keeps, it must fetch the whole shard, and can then
re-apply only the chunks whose deltas it keeps. So of any two replicas, one must have every chunk
that the other holds without a delta; otherwise the two could never be merged again. A ready replica
therefore releases the deltas of chunks that all other replicas are known to have. This is safe:

- A report never expires. If the replica has lost chunks since, it fetches the whole shard.
- Release does not wait for a replica that recently reported that it holds nothing yet, because that
  replica will fetch the whole shard, too. Under constant churn such a replica always exists, and
  no delta would ever be released. But two replicas must not both regard each other as empty and
  release what the other lacks. So a replica releases only once it has been ready for more than
  twice `word_counts`: by then no recent report calls it empty.
- A draining replica is kept up to date until the owners have proved that they hold the shard (see
  `HandoverProof`), so release waits for it like for any other replica.
- A replica may fetch a whole shard from a third replica meanwhile. Release waits for that third
  replica, too, so it is known to have the chunks that are released here. And nothing is released
  while any replica has a chunk that is missing here.
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
        self._seen = -1, -1

    def due(self, now: float) -> list[Action]:
        """If a check is due, release the deltas that no replica can need any more."""
        if now - self._looked < self._settings.release_every:
            return []
        self._looked = now
        seen, before = (self._others.version(now), self._replicas.changes), self._seen
        if seen == before and not self._held.retains:  # the usual case, where nothing is learned
            return []
        self._seen = seen
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
