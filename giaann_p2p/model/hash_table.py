"""A hash table of numbers, made of one array. Insertion and lookup are vectorised.

The things that are numbered 0, 1, 2, ... and their hashes are kept by the caller. One thread adds
numbers, and any thread may look them up meanwhile: an array that grows is replaced by another.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ids, Ints

Numbers = npt.NDArray[np.uint32]
Bools = npt.NDArray[np.bool_]
Same = Callable[[Numbers, Ints], Bools]
"""Given numbers, and for each one the index of a wanted thing, returns whether the number is that
thing's. A number may be FREE; what is returned for it does not matter."""

FREE = (1 << 32) - 1
"""The number of a thing that is not in the table."""

_HALF = 32
_LEAST = 1 << 10
_GROWTH = 4 / 3
"""The factor by which a full table grows. After a larger one, more of the table is unused; after a
smaller one, all numbers are placed anew more often."""
_GENEROUS, _SMALL = 4, 1 << 16
"""A table that grows gets this many slots for each number, up to `_SMALL` slots in all: more slots
than necessary make it faster, and a small table takes little memory anyway."""
_STEPS = 32
"""The number of probes with growing steps, which keep numbers from piling up. From then on, the
step is 1, so that every slot is found, whatever the size of the table."""
_MOVED = 1 << 14
"""The number of numbers that are placed anew at once, so that temporary arrays stay small."""


class HashTable:
    """A set of numbers, each in the slot of its hash or in a later one."""

    def __init__(self, full: float) -> None:
        """`full`: the greatest share of used slots. More takes less memory, but more time."""
        self._full = full
        self.slots = _free(_LEAST)
        """The numbers; FREE in a free slot."""

    def look_up(self, hashes: Ids, same: Same) -> Numbers:
        """Return the number of each wanted thing; FREE for one that is not in the table."""
        slots, probe = self.slots, 0
        found = np.empty(len(hashes), np.uint32)
        left, place = np.arange(len(hashes)), _places(slots, hashes)
        while len(left):
            found[left] = number = slots.take(place, mode="wrap")
            ended = same(number, left)
            ended |= number == FREE
            again = np.logical_not(ended).nonzero()[0]
            left, place = left[again], place[again]
            probe += 1
            place += step(probe)
        return found

    def add(self, first: int, end: int, hashes_of: Callable[[Numbers], Ids]) -> None:
        """Add the numbers from `first` to before `end`; lower ones are in the table already."""
        if end > self._full * len(self.slots):
            size = max(_GROWTH * end / self._full, min(_GENEROUS * end, _SMALL))
            grown = _free(int(size))
            for start in range(0, first, _MOVED):
                _place(grown, start, min(start + _MOVED, first), hashes_of)
            self.slots = grown
        _place(self.slots, first, end, hashes_of)


def first_place(hashed: int, size: int) -> int:
    """Return the slot to probe first in a table of some size; a hash is a fraction of the table."""
    return (hashed >> _HALF) * size >> _HALF


def step(probe: int) -> int:
    """Return by how many slots a probe is after the probe before it."""
    return probe if probe < _STEPS else 1


def _places(slots: Numbers, hashes: Ids) -> Ints:
    place = hashes >> np.uint64(_HALF)
    place *= np.uint64(len(slots))
    place >>= np.uint64(_HALF)
    return place.view(np.int64)


def _place(slots: Numbers, first: int, end: int, hashes_of: Callable[[Numbers], Ids]) -> None:
    """Put some numbers into free slots."""
    number = np.arange(first, end, dtype=np.uint32)
    place, probe = _places(slots, hashes_of(number)), 0
    while len(number):
        free = (slots.take(place, mode="wrap") == FREE).nonzero()[0]
        slots.put(place[free], number[free], mode="wrap")  # in a collision, one gets the slot
        again = (slots.take(place, mode="wrap") != number).nonzero()[0]
        number, place = number[again], place[again]
        probe += 1
        place += step(probe)


def _free(size: int) -> Numbers:
    return np.full(size, FREE, np.uint32)
