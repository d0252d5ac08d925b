"""Neurons by small numbers: 0, 1, 2, ... as they come, so that a connection names one in 4 bytes.

A hash table of arrays, filled and asked many at a time. One thread adds, any may look up meanwhile:
a neuron is written before its slot, and growth puts a new table in the place of the old.
"""

import secrets
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ids

Numbers = npt.NDArray[np.uint32]

_FREE = np.uint32(0xFFFFFFFF)
_WORD = (1 << 64) - 1
_LEAST_BITS = 10


class _Table(NamedTuple):
    slots: Numbers
    """[2^bits] the number of the neuron whose place this or one before is."""
    shift: int
    """64 - bits."""
    concept: Ids
    """[at least half as many] by number."""
    feature: Ids


class Neurons:
    """Neurons and their numbers."""

    def __init__(self) -> None:
        # Random, so that nobody can choose words that fall on one place.
        self._a, self._b = secrets.randbits(64) | 1, secrets.randbits(64) | 1
        self._count = 0
        self._table = _empty_table(_LEAST_BITS)

    def __len__(self) -> int:
        return self._count

    @property
    def concept(self) -> Ids:
        """[at least len] by number."""
        return self._table.concept

    @property
    def feature(self) -> Ids:
        """[at least len] by number."""
        return self._table.feature

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return sum(a.nbytes for a in self._table if isinstance(a, np.ndarray))

    def find(self, concept: int, feature: int) -> int | None:
        """Return a neuron's number."""
        slots, shift, concepts, features = self._table
        place = (concept * self._a + feature * self._b & _WORD) >> shift
        while (number := int(slots[place])) != _FREE:
            if concepts[number] == concept and features[number] == feature:
                return number
            place = (place + 1) % len(slots)
        return None

    def numbers(self, concept: Ids, feature: Ids) -> Numbers:
        """Return the numbers of distinct neurons; new ones get the next, in their order."""
        found = self.look_up(concept, feature)
        new = found == _FREE
        count = int(np.count_nonzero(new))
        if count:
            self._make_room(count)
            found[new] = added = np.arange(self._count, self._count + count, dtype=np.uint32)
            self._table.concept[added] = concept[new]
            self._table.feature[added] = feature[new]
            self._count += count
            self._place(self._table, added)
        return found

    def look_up(self, concept: Ids, feature: Ids) -> Numbers:
        """Return the numbers of neurons; the greatest there is for one that has none."""
        slots, _, concepts, features = table = self._table
        found = np.full(len(concept), _FREE)
        place, left = self._places(table, concept, feature), np.arange(len(concept))
        while len(left):
            number = slots[place[left]]
            taken = number != _FREE  # what is behind a free slot was never added
            left, number = left[taken], number[taken]
            same = (concepts[number] == concept[left]) & (features[number] == feature[left])
            found[left[same]] = number[same]
            left = left[~same]
            place[left] = (place[left] + 1) % len(slots)
        return found

    def _place(self, table: _Table, numbers: Numbers) -> None:
        """Put neurons that are not there yet into free slots."""
        slots = table.slots
        place = self._places(table, table.concept[numbers], table.feature[numbers])
        left = np.arange(len(numbers))
        while len(left):
            free = left[slots[place[left]] == _FREE]
            slots[place[free]] = numbers[free]  # of several that want one slot, one gets it
            left = left[slots[place[left]] != numbers[left]]
            place[left] = (place[left] + 1) % len(slots)

    def _places(self, table: _Table, concept: Ids, feature: Ids) -> npt.NDArray[np.intp]:
        mixed = concept * np.uint64(self._a) + feature * np.uint64(self._b)
        return (mixed >> np.uint64(table.shift)).astype(np.intp)

    def _make_room(self, more: int) -> None:
        need = self._count + more
        if need <= len(self._table.concept):
            return
        grown = _empty_table((2 * need - 1).bit_length())
        grown.concept[: self._count] = self._table.concept[: self._count]
        grown.feature[: self._count] = self._table.feature[: self._count]
        self._place(grown, np.arange(self._count, dtype=np.uint32))
        self._table = grown


def _empty_table(bits: int) -> _Table:
    size = 1 << bits
    return _Table(
        np.full(size, _FREE),
        64 - bits,
        np.empty(size // 2, np.uint64),
        np.empty(size // 2, np.uint64),
    )
