"""An LRU cache of rows, bounded in bytes.

Prefetched rows, called guesses, are kept apart, in one eighth of the space, until they are asked
for. So a guess can evict only other guesses, never a row in use.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from giaann_p2p.model.rows import Neuron, Row

_GUESSES = 8
"""The share of the space that prefetched rows may take: one byte in 8."""
_ENTRY_BYTES = 1024
"""Bytes that an entry takes beside its row's arrays; an entry for a missing row has no arrays."""
Number = TypeVar("Number", bound=np.generic)


class Kept(NamedTuple):
    """A neuron's cached row."""

    row: Row | None
    """The row; None if the neuron has never occurred."""
    read: float
    """Time at which the read of the row began, by the event loop's clock."""


class RowShelf:
    """Two LRU lists of rows: those in use, and prefetched ones that were not asked for yet.

    Invariant: a neuron is in at most one of the two lists.
    """

    def __init__(self, most_bytes: int) -> None:
        self.wasted = 0
        """Number of prefetched rows that were evicted without having been asked for."""
        self._used = _Shelf(most_bytes - most_bytes // _GUESSES, lambda: None)
        self._guessed = _Shelf(most_bytes // _GUESSES, self._waste)

    def __len__(self) -> int:
        return len(self._used.kept) + len(self._guessed.kept)

    def __contains__(self, neuron: Neuron) -> bool:
        return neuron in self._used.kept or neuron in self._guessed.kept

    def __repr__(self) -> str:
        return f"<RowShelf: {len(self):,} rows, {self.nbytes:,} bytes>"

    @property
    def nbytes(self) -> int:
        """Approximate memory that all rows take, in bytes."""
        return self._used.nbytes + self._guessed.nbytes

    def look(self, neuron: Neuron) -> Kept | None:
        """Return a neuron's row if it is cached, without marking it as used."""
        return self._used.kept.get(neuron) or self._guessed.kept.get(neuron)

    def take(self, neuron: Neuron) -> tuple[Kept | None, bool]:
        """Mark a neuron's row as used; return it if it is cached, and whether it was a guess."""
        kept = self._used.kept.get(neuron)
        if kept is not None:
            self._used.kept.move_to_end(neuron)
            return kept, False
        kept = self._guessed.pop(neuron)
        if kept is None:
            return None, False
        self._used.put(neuron, kept)
        return kept, True

    def put(
        self, neuron: Neuron, row: Row | None, read: float, *, guess: bool = False
    ) -> Row | None:
        """Cache a neuron's row, copied out of any larger arrays that it is a view of; return it.

        If the cached row has the same content, it is kept and returned, because results derived
        from it are still valid.
        """
        old = self.look(neuron)
        same = old is not None and old.row is not None and row is not None and old.row.same(row)
        kept = Kept(old.row if old is not None and same else row and _own(row), read)
        if guess and neuron not in self._used.kept:
            self._guessed.put(neuron, kept)
        else:
            self._guessed.pop(neuron)
            self._used.put(neuron, kept)
        return kept.row

    def _waste(self) -> None:
        self.wasted += 1


class _Shelf:
    """An LRU list of rows, bounded in bytes; `gone` is called for each eviction."""

    def __init__(self, most_bytes: int, gone: Callable[[], None]) -> None:
        self.kept: OrderedDict[Neuron, Kept] = OrderedDict()
        self.nbytes = 0
        self._most_bytes, self._gone = most_bytes, gone

    def put(self, neuron: Neuron, kept: Kept) -> None:
        self.pop(neuron)
        self.kept[neuron] = kept
        self.nbytes += _size(kept)
        while self.nbytes > self._most_bytes:
            self.pop(next(iter(self.kept)))
            self._gone()

    def pop(self, neuron: Neuron) -> Kept | None:
        kept = self.kept.pop(neuron, None)
        if kept is not None:
            self.nbytes -= _size(kept)
        return kept


def size_of(row: Row | None) -> int:
    """Return the approximate memory that a row takes, in bytes."""
    if row is None:
        return _ENTRY_BYTES
    numbers = row.target_concept, row.target_feature, row.target
    return _ENTRY_BYTES + sum(
        array.nbytes for array in (*numbers, row.branch, row.segment, row.strength)
    )


def _size(kept: Kept) -> int:
    return size_of(kept.row)


def _own(row: Row) -> Row:
    """Return the row with arrays of its own, because views would keep larger arrays in memory."""
    return replace(
        row,
        target_concept=_alone(row.target_concept),
        target_feature=_alone(row.target_feature),
        target=_alone(row.target),
        branch=_alone(row.branch),
        segment=_alone(row.segment),
        strength=_alone(row.strength),
    )


def _alone(array: npt.NDArray[Number]) -> npt.NDArray[Number]:
    return array if array.base is None else array.copy()
