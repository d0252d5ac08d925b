"""A snapshot of which chunks the store holds, because the event loop must not wait for the store.

The store itself answers only between two writes, and a write takes as long as the disk does. The
snapshot is consistent and at most one write old, and it is refreshed before that write is
acknowledged. So a decision based on it is one that could have been made just before the write.
"""

from collections.abc import Iterable

from giaann_p2p.store.applied import Applied
from giaann_p2p.store.cold import ColdRoom
from giaann_p2p.store.store import Store


class Holdings:
    """The snapshot of one store; only the thread that changes the store calls `look`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.look()

    def look(self) -> None:
        """Refresh the snapshot."""
        shards = self._store.shards.tolist()
        self._now = self._store.sets(shards)

    def sets(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the chunks that shards have applied, for those of `shards` that are held here."""
        known = self._now
        return {shard: known[shard] for shard in shards if shard in known}

    @property
    def cold(self) -> ColdRoom:
        """The cold copies: files of shards that have left memory."""
        return self._store.cold

    def size_of(self, shard: int) -> int:
        """Return a shard's approximate number of connections."""
        return self._store.size_of(shard)

    def retained_for(self, shard: int) -> Applied:
        """Return the chunks whose deltas for a shard are retained.

        This asks the store itself and may wait for a write; it is rarely needed.
        """
        return self._store.retained_for(shard)
