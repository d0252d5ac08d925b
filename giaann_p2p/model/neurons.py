"""Numbers neurons 0, 1, 2, ... in order of arrival, so that a connection refers to one in 4 bytes.

The index is a hash table made of arrays, with vectorised insertion and lookup. One thread adds
neurons, and any thread may look them up meanwhile: a neuron is written before its slot is, and an
array that grows is replaced by another. So a reader loads a slot first, and then the neuron's ids.
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
_GROWTH = 8
"""Growing arrays grow by this part of their length, so that little of them is unused."""


class _Table(NamedTuple):
    slots: Numbers
    """Shape [2^bits]: each neuron's number, in the slot of its hash or in a later one (linear
    probing); 2^32 - 1 in a free slot. At most half of the slots are used."""
    shift: int
    """The shift that turns a 64-bit hash into a slot: 64 - bits."""


class Neurons:
    """A mapping from neurons to their numbers."""

    def __init__(self) -> None:
        # Random, so that no attacker can choose words that collide.
        self._a, self._b = secrets.randbits(64) | 1, secrets.randbits(64) | 1
        self._count = 0
        self._table = _empty_table(_LEAST_BITS)
        self.concept: Ids = np.empty(0, np.uint64)
        """The concept of each neuron, by number; the array may be longer than there are neurons."""
        self.feature: Ids = np.empty(0, np.uint64)
        """The feature of each neuron, by number; the array may be longer than there are neurons."""

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The memory that the mapping takes, in bytes."""
        return self._table.slots.nbytes + self.concept.nbytes + self.feature.nbytes

    def find(self, concept: int, feature: int) -> int | None:
        """Return a neuron's number; None if the neuron was never added."""
        slots, shift = self._table
        place = (concept * self._a + feature * self._b & _WORD) >> shift
        while (number := int(slots[place])) != _FREE:
            if self.concept[number] == concept and self.feature[number] == feature:
                return number
            place = (place + 1) % len(slots)
        return None

    def numbers(self, concept: Ids, feature: Ids) -> Numbers:
        """Return the numbers of distinct neurons; new neurons are added, with the next numbers."""
        found = self.look_up(concept, feature)
        new = found == _FREE
        count = int(np.count_nonzero(new))
        if count:
            self._make_room(count)
            found[new] = added = np.arange(self._count, self._count + count, dtype=np.uint32)
            self.concept[added] = concept[new]
            self.feature[added] = feature[new]
            self._count += count
            self._place(self._table, added)
        return found

    def look_up(self, concept: Ids, feature: Ids) -> Numbers:
        """Return the numbers of some neurons; 2^32 - 1 for a neuron that was never added."""
        slots, _ = table = self._table
        found = np.full(len(concept), _FREE)
        place, left = self._places(table, concept, feature), np.arange(len(concept))
        while len(left):
            number = slots[place[left]]
            taken = number != _FREE  # a free slot ends the probe: the neuron was never added
            left, number = left[taken], number[taken]
            same = self.concept[number] == concept[left]
            same &= self.feature[number] == feature[left]
            found[left[same]] = number[same]
            left = left[~same]
            place[left] = (place[left] + 1) % len(slots)
        return found

    def _place(self, table: _Table, numbers: Numbers) -> None:
        """Put the numbers of neurons that are not in the table into free slots."""
        slots = table.slots
        place = self._places(table, self.concept[numbers], self.feature[numbers])
        left = np.arange(len(numbers))
        while len(left):
            free = left[slots[place[left]] == _FREE]
            slots[place[free]] = numbers[free]  # in a collision, one neuron gets the slot
            left = left[slots[place[left]] != numbers[left]]
            place[left] = (place[left] + 1) % len(slots)

    def _places(self, table: _Table, concept: Ids, feature: Ids) -> npt.NDArray[np.intp]:
        mixed = concept * np.uint64(self._a) + feature * np.uint64(self._b)
        return (mixed >> np.uint64(table.shift)).astype(np.intp)

    def _make_room(self, more: int) -> None:
        need = self._count + more
        if need > len(self.concept):
            size = need + need // _GROWTH
            self.concept, self.feature = _longer(self.concept, size), _longer(self.feature, size)
        if 2 * need > len(self._table.slots):
            grown = _empty_table((2 * need - 1).bit_length())
            self._place(grown, np.arange(self._count, dtype=np.uint32))
            self._table = grown


def _longer(ids: Ids, size: int) -> Ids:
    longer = np.empty(size, np.uint64)
    longer[: len(ids)] = ids
    return longer


def _empty_table(bits: int) -> _Table:
    return _Table(np.full(1 << bits, _FREE), 64 - bits)
