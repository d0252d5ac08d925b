"""Rows that were read, kept within so many bytes: who was not asked for longest goes first.

What was read ahead, on a guess, lies on a shelf of its own, a part of the whole, until it is asked
for. So a guess takes only other guesses' places, never that of what is in use.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.rows import Neuron, Row

_GUESSES = 8
"""One in so many bytes is for guesses."""
_ENTRY_BYTES = 1024
"""What a row takes beside its numbers; without one, what it takes to know that there is none."""
Number = TypeVar("Number", bound=np.generic)


class Kept(NamedTuple):
    """A neuron's row, None if it never occurred, and when somebody was asked for it."""

    row: Row | None
    read: float


class RowShelf:
    """See the module."""

    def __init__(self, most_bytes: int) -> None:
        self.wasted = 0
        """Guesses that went without having been asked for."""
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
        """How much memory all takes, about."""
        return self._used.nbytes + self._guessed.nbytes

    def look(self, neuron: Neuron) -> Kept | None:
        """Return what is known, and leave it where it is."""
        return self._used.kept.get(neuron) or self._guessed.kept.get(neuron)

    def take(self, neuron: Neuron) -> tuple[Kept | None, bool]:
        """Return what is known, now in use, and whether it was a guess till now."""
        kept = self._used.kept.get(neuron)
        if kept is not None:
            self._used.kept.move_to_end(neuron)
            return kept, False
        kept = self._guessed.pop(neuron)
        if kept is None:
            return None, False
        self._used.put(neuron, kept)
        return kept, True

    def put(self, neuron: Neuron, row: Row | None, read: float, *, guess: bool = False) -> None:
        """Keep a row, alone: not what it was cut from."""
        kept = Kept(row and _own(row), read)
        if guess and neuron not in self._used.kept:
            self._guessed.put(neuron, kept)
        else:
            self._guessed.pop(neuron)
            self._used.put(neuron, kept)

    def _waste(self) -> None:
        self.wasted += 1


class _Shelf:
    """Rows by when they were asked for last."""

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
    """Return how much memory a row takes, about."""
    if row is None:
        return _ENTRY_BYTES
    numbers = row.target_concept, row.target_feature, row.target
    return _ENTRY_BYTES + sum(
        array.nbytes for array in (*numbers, row.branch, row.segment, row.strength)
    )


def _size(kept: Kept) -> int:
    return size_of(kept.row)


def _own(row: Row) -> Row:
    """Return a row whose arrays are no parts of larger ones, which would stay with them."""
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
