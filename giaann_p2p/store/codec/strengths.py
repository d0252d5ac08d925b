"""Encodes strengths as one-byte indices into a table.

Most strengths of a brain have one of few values: 10 / (distance + 1), and small multiples of it.
The 255 most frequent values of a sample form a table. A strength in the table is encoded as its
index; any other is encoded as the table's length, and its value is stored separately. Strengths are
ordered by place, because a place nearly determines the distance: so equal values become neighbours,
which zstd compresses well.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Bytes
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.codec.damage import ascending, check

TABLE = 255
"""The most values in a table of strengths: their indices, and one more for all other values, fit
into a byte."""

SAMPLE = 1 << 16
"""The approximate number of strengths in the sample whose most frequent values form the table."""
_SLOT_BITS = 16
_FEW = 1 << 11
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)

Places = npt.NDArray[Any]
"""An array of place numbers, of any unsigned type."""


class Strengths(NamedTuple):
    """Encoded strengths: a table, an index for each strength, and the values not in the table."""

    table: Ints
    """Shape [at most TABLE]: the table's values, ascending; each is stored as the difference from
    the one before."""
    numbers: Bytes
    """Shape [n]: each strength's index in the table, ordered by place."""
    rest: Ints
    """The values of the strengths that are not in the table, ordered by place."""


def table_of(strength: Ints, sample: int = SAMPLE) -> Ints:
    """Return the most frequent values of a sample of strengths, ascending."""
    values, counts = np.unique(strength[:: len(strength) // sample + 1], return_counts=True)
    return np.sort(values[np.argsort(-counts, kind="stable")[:TABLE]])


def numbered(strength: Ints, place: Places, sample: int = SAMPLE) -> Strengths:
    """Encode strengths; `place` is the place of each."""
    strength = strength[np.argsort(place, kind="stable")]
    table = table_of(strength, sample)
    number = _numbers(strength, table)
    missing = number == len(table)
    return Strengths(np.diff(table, prepend=0), number, strength[missing])


def _numbers(strength: Ints, table: Ints) -> Bytes:
    """Return each strength's index in the table, or the table's length if it is not there.

    A hash table finds nearly all indices in one step; a binary search finds the others. If there
    are few strengths, all are searched, because filling the hash table would take longer.
    """
    whole = np.append(table, 0)  # no strength is 0
    if len(strength) < _FEW:
        return _searched(strength, table, whole).astype(np.uint8)
    slots = np.zeros(1 << _SLOT_BITS, np.uint8)
    slots[_slots(table)] = np.arange(len(table))  # in a collision, one value wins
    number = slots.take(_slots(strength))
    (other,) = (whole.take(number) != strength).nonzero()
    number[other] = _searched(strength[other], table, whole)
    return number


def _searched(strength: Ints, table: Ints, whole: Ints) -> Ints:
    found = np.searchsorted(table, strength)
    found[whole.take(found) != strength] = len(table)
    return found


def _slots(strength: Ints) -> Ints:
    return strength * _GOLDEN >> 64 - _SLOT_BITS & (1 << _SLOT_BITS) - 1


def restored(coded: Strengths, place: Places) -> Ints:
    """Decode strengths; `place` is the place of each. DamagedError if they are invalid."""
    table = np.cumsum(coded.table)  # a sum that wraps does not ascend, and is refused
    check(
        len(table) <= TABLE and ascending(table),
        "the table of strengths is too long or does not ascend",
    )
    check((table > 0).all() and (coded.rest > 0).all(), "a strength is below 1")
    check(len(coded.numbers) == len(place), "there must be one strength for each place")
    check(coded.numbers.max(initial=0) <= len(table), "the index of a strength is beyond the table")
    strength = np.append(table, 0).take(coded.numbers)
    missing = np.flatnonzero(coded.numbers == len(table))
    check(len(missing) == len(coded.rest), "the number of strengths outside the table is wrong")
    strength[missing] = coded.rest
    found = np.empty_like(strength)
    found[np.argsort(place, kind="stable")] = strength
    return found
