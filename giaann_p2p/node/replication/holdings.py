"""A snapshot of which chunks the store holds, because the event loop must not wait for the store.

The store itself answers only between two writes, and a write takes as long as the disk does. The
snapshot is consistent and lags by one write at most, and it is refreshed before that write is
acknowledged. So a decision based on it is as valid as one made just before the write.

When the store divides its shards, the snapshot keeps the former shards until `follow` is called, in
the same step of the event loop in which the decisions are replaced.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from giaann_p2p.store.applied import Applied
from giaann_p2p.store.cold import Cold
from giaann_p2p.store.store import Store


class ColdSnapshot(NamedTuple):
    """The cold copies of a store at one moment; see `ColdRoom` for the fields."""

    copies: Mapping[int, Cold]
    durable: bool
    changes: int

    @property
    def nbytes(self) -> int:
        """The size of all cold copies on the disk, in bytes."""
        return sum(copy.nbytes for copy in self.copies.values())


class _Snapshot(NamedTuple):
    """A store's sets of chunks and cold copies at one moment; the swarm had `shards` shards."""

    shards: int
    sets: Mapping[int, Applied]
    cold: ColdSnapshot


class Holdings:
    """A snapshot of the chunks that a store holds, for the event loop.

    Only the thread that changes the store calls `look`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_dividing = False
        """Whether the store divides its shards, which may take it seconds."""
        self._now = self._newest = self._seen()

    def look(self) -> None:
        """Refresh the snapshot from the store."""
        self._newest = self._seen()
        if self._newest.shards == self._now.shards:
            self._now = self._newest

    def follow(self) -> None:
        """Switch the snapshot to the shards into which the store was divided."""
        self._now = self._newest

    def sets(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the applied chunks of each shard in `shards` that this peer holds."""
        known = self._now.sets
        return {shard: known[shard] for shard in shards if shard in known}

    @property
    def cold(self) -> ColdSnapshot:
        """The store's cold copies: files of shards that have left memory."""
        return self._now.cold

    def size_of(self, shard: int) -> int:
        """Return a shard's approximate number of connections."""
        return self._store.size_of(shard)

    @property
    def retains(self) -> bool:
        """Whether the store retains any delta that is not released yet."""
        return self._store.retains

    def retained_for(self, shard: int) -> Applied:
        """Return the chunks whose deltas for a shard the store retains.

        The store itself answers, possibly after waiting for a write; this is rarely needed. While
        it divides its shards, the result is empty: decisions made then are soon void anyway.
        """
        return Applied() if self.is_dividing else self._store.retained_for(shard)

    def _seen(self) -> _Snapshot:
        store, cold = self._store, self._store.cold
        sets = store.sets(store.shards.tolist())
        for mine in {id(mine): mine for mine in sets.values()}.values():
            _ = mine.digest  # cached in this thread, because a new digest takes up to milliseconds
        copies = ColdSnapshot(cold.copies, cold.durable, cold.changes)
        return _Snapshot(store.layout.shards, sets, copies)
