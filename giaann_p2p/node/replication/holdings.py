"""A snapshot of which chunks the store holds, because the event loop must not wait for the store.

The store itself answers only between two writes, and a write takes as long as the disk does. The
snapshot is consistent and lags by one write at most, and it is refreshed before that write is
acknowledged. So a decision based on it is as valid as one made just before the write.
"""

from collections.abc import Iterable

from giaann_p2p.store.applied import Applied
from giaann_p2p.store.cold import ColdRoom
from giaann_p2p.store.store import Store


class Holdings:
    """A snapshot of the chunks that a store holds, for the event loop.

    Only the thread that changes the store calls `look`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.look()

    def look(self) -> None:
        """Refresh the snapshot from the store."""
        shards = self._store.shards.tolist()
        self._now = self._store.sets(shards)

    def sets(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the applied chunks of each shard in `shards` that this peer holds."""
        known = self._now
        return {shard: known[shard] for shard in shards if shard in known}

    @property
    def cold(self) -> ColdRoom:
        """The store's cold copies: files of shards that have left memory."""
        return self._store.cold

    def size_of(self, shard: int) -> int:
        """Return a shard's approximate number of connections."""
        return self._store.size_of(shard)

    @property
    def retains(self) -> bool:
        """Whether the store retains any delta that is not released yet."""
        return self._store.retains

    def retained_for(self, shard: int) -> Applied:
        """Return the chunks whose deltas for a shard the store retains.

        The store itself answers, possibly after waiting for a write; this is rarely needed.
        """
        return self._store.retained_for(shard)
