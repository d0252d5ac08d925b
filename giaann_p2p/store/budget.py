"""How much memory a store may use, and whether a write fits: asked before it is done."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from giaann_p2p.errors import StoreFull
from giaann_p2p.model.delta import Delta
from giaann_p2p.store.applied import SET_BYTES
from giaann_p2p.store.content import Content
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.state import State
from giaann_p2p.store.update import Update

_CONNECTION = 9
"""Bytes of a connection, on its way in and when it is merged."""
_NEURON = 96
"""Bytes of a neuron that is new: numbers, places in the indices, a row, some of a name."""
_MERGING = 80
"""Bytes a connection that merging a shard and writing it down takes for as long as it lasts."""
_WORD, _SHARD, _BATCH = 150, SET_BYTES + 8, 1000
"""Bytes of a word beside its text, of a chunk in a shard's sets, of an update that has nothing."""


@dataclass(frozen=True)
class Budget:
    """A number of bytes; None for as much as there is."""

    nbytes: int | None = None

    def admit(
        self, state: State, updates: Sequence[Update], planned: Sequence[Shards], kept: int = 0
    ) -> None:
        """Raise StoreFull unless there is room for updates that are new to some shards, and for
        what is kept of them."""
        if self.nbytes is None:
            return
        pairs = zip(updates, planned, strict=True)
        new = [(update.delta, len(fresh)) for update, fresh in pairs if len(fresh)]
        batch = _BATCH + 8 * state.columns.layout.shards
        grown = sum(_growth(delta) + _SHARD * shards + batch for delta, shards in new)
        self._admit(state, grown + kept)

    def admit_content(self, state: State, held: Iterable[Content]) -> None:
        """Raise StoreFull unless there is room for shards from elsewhere, one after the other."""
        deltas = [one.delta for one in held]
        largest = max((delta.connections for delta in deltas), default=0)
        self._admit(state, sum(map(_growth, deltas)) + _MERGING * largest)

    def _admit(self, state: State, more: int) -> None:
        if self.nbytes is None or not more:
            return
        used = state.nbytes + _MERGING * state.columns.largest
        if used + more > self.nbytes:
            raise StoreFull(
                f"the store is full: {used:,} bytes are in use, {more:,} more are needed, "
                f"{self.nbytes:,} is the limit; raise it, or drop shards and compact"
            )


def _growth(delta: Delta) -> int:
    text = sum(_WORD + len(text) for text in delta.names.values())
    return 2 * _CONNECTION * delta.connections + _NEURON * delta.neurons + text
