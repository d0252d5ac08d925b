"""The memory limit of a store; every write is checked against it before it is applied."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from giaann_p2p.errors import StoreFull
from giaann_p2p.model.delta import Delta
from giaann_p2p.store.applied import SET_BYTES
from giaann_p2p.store.content import Content
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.update import Update

_CONNECTION = 10
"""Bytes per added connection. They count twice: for the batch that adds the connection, and for the
shard that it is merged into."""
_NEURON = 96
"""Bytes per new neuron: for its ids, its index entries, its row, and a part of its name."""
_MERGING = 80
"""Temporary bytes per connection of a shard, while the shard is merged and written."""
_WORD, _SHARD, _BATCH = 150, SET_BYTES + 8, 1000
"""Bytes per word besides its text, bytes per chunk for each shard that applies it, and bytes per
empty update."""


@dataclass(frozen=True)
class Budget:
    """The memory limit of a store in bytes; None means unlimited."""

    nbytes: int | None = None

    @staticmethod
    def used(state: StoreState) -> int:
        """Return the bytes that a store uses, with a reserve for merging its largest shard."""
        return state.nbytes + _MERGING * state.columns.largest

    def admit(
        self, state: StoreState, updates: Sequence[Update], planned: Sequence[Shards], kept: int = 0
    ) -> None:
        """Raise StoreFull unless the updates fit, together with `kept` bytes for archiving them.

        `planned`: for each update, the shards to which it is new.
        """
        if self.nbytes is None:
            return
        pairs = zip(updates, planned, strict=True)
        new = [(update.delta, len(fresh)) for update, fresh in pairs if len(fresh)]
        batch = _BATCH + 8 * state.columns.layout.shards
        grown = sum(_growth(delta) + _SHARD * shards + batch for delta, shards in new)
        self._admit(state, grown + kept)

    def admit_content(self, state: StoreState, held: Iterable[Content]) -> None:
        """Raise StoreFull unless the content of shards from other stores fits.

        The shards are adopted one by one, so only the largest needs memory for merging.
        """
        deltas = [one.delta for one in held]
        largest = max((delta.connections for delta in deltas), default=0)
        self._admit(state, sum(map(_growth, deltas)) + _MERGING * largest)

    def _admit(self, state: StoreState, more: int) -> None:
        if self.nbytes is None or not more:
            return
        used = self.used(state)
        if used + more > self.nbytes:
            raise StoreFull(
                f"the store is full: {used:,} bytes are in use, {more:,} more are needed, "
                f"{self.nbytes:,} is the limit; raise it, or drop shards and compact",
                more,
            )


def _growth(delta: Delta) -> int:
    text = sum(_WORD + len(text) for text in delta.names.values())
    return 2 * _CONNECTION * delta.connections + _NEURON * delta.neurons + text
