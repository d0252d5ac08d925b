"""What the store held after its last deed, told at once: a store tells it only between two writes.

A write takes as long as the disk takes, and whoever asks the store meanwhile waits; the loop must
not. All that is told here is of one moment, which may be a write ago, and never ahead of what was
acknowledged: whoever decides by it decides as if it had been asked a moment earlier.
"""

from collections.abc import Iterable

from giaann_p2p.store.applied import Applied
from giaann_p2p.store.store import Store


class Holdings:
    """Of one store; only the thread that changes it calls `look`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.look()

    def look(self) -> None:
        """See what the store holds now."""
        shards = self._store.shards.tolist()
        self._now = self._store.sets(shards)

    def sets(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the chunks that some shards have taken in, those that are held here."""
        known = self._now
        return {shard: known[shard] for shard in shards if shard in known}

    def retained_for(self, shard: int) -> Applied:
        """Return the chunks whose deltas for a shard are kept; seldom asked, so it may wait."""
        return self._store.retained_for(shard)
