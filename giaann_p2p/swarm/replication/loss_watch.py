"""Detects lost data: periodically checks that every chunk once known of a shard still exists."""

from collections.abc import Iterable, Iterator
from itertools import chain

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication.known_sets import KnownSets
from giaann_p2p.swarm.replication.readiness import Readiness
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.replica import ReplicaState

_EVERY = 5.0
"""Seconds between two checks for lost chunks."""


class LossWatch:
    """One storage peer's checks for lost chunks. `known.missing` has the losses found."""

    def __init__(self, shared: Shared, readiness: Readiness) -> None:
        rules = shared.rules
        self.known = KnownSets(0 if rules.shards == rules.first_shards else rules.shards)
        self._replicas, self._others, self._held = shared.replicas, shared.others, shared.held
        self._readiness, self._looked_at = readiness, shared.begun

    def __repr__(self) -> str:
        return f"<LossWatch: {self.known!r}>"

    def take_over(self, past: "LossWatch") -> None:
        """Continue the watch from before the shards were divided."""
        self.known = past.known.doubled(past._replicas.shards, self._replicas.shards)
        self._looked_at = past._looked_at

    def look(self, now: float) -> None:
        """If a check is due, compare each shard's known chunks with the chunks that still exist.

        After a restart the first check waits until other peers have had time to report. The known
        chunks are restored at once, so without the wait all of them would seem lost.
        """
        if now - self._looked_at < _EVERY or not self._readiness.has_waited(now):
            return
        self._looked_at = now
        for shard, mine in self._held.sets(self._replicas.all(ReplicaState.READY).tolist()).items():
            self.known.saw(shard, mine, self._held.size_of(shard), now)
        found = {n: sets for n in self.known.of() if (sets := self._found(n, now)) is not None}
        self.known.compare(found, now)

    def _found(self, shard: int, now: float) -> Iterable[Applied] | None:
        """Return the sets of chunks that replicas of a shard have now, local ones first.

        The result is None if this peer cannot know the sets, because another peer announces the
        shard as ready and this peer holds no replica to compare.
        """
        copy = self._held.cold.copies.get(shard)
        kept = [copy.chunks] if copy else []
        mine = self._held.sets([shard]).get(shard)
        if mine is None:
            return None if self._others.ready(shard, now) else kept
        return chain([mine], kept, self._said_of(shard, now))

    def _said_of(self, shard: int, now: float) -> Iterator[Applied]:
        yield from (word.chunks for word in self._readiness.words(shard, now).values())
