"""Strengths as bytes of a table's numbers.

Most strengths of a brain are few values: 10 / (distance + 1), and small multiples. The 255 most
frequent of a sample make a table; a strength is its number there, or the table's length if it is
not in it, and then stands in full among the rest. They come in the order of their places, for a
place determines the distance, or nearly, and so like stands beside like, as zstd wants it.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Bytes
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.codec.damage import ascending, check

TABLE = 255
"""Most values in a table: their numbers, and the one for all other values, fit a byte."""

SAMPLE = 1 << 16
"""Values of which the most frequent make the table, about."""
_SLOT_BITS = 16
_FEW = 1 << 11
_GOLDEN = 0x9E3779B97F4A7C15 - (1 << 64)

Places = npt.NDArray[Any]
"""Numbers of places, of any unsigned type."""


class Strengths(NamedTuple):
    """Strengths, ready to be packed."""

    table: Ints
    """[<= TABLE] its values, each as the distance to the one before."""
    numbers: Bytes
    """[n] in the order of places."""
    rest: Ints
    """What is not in the table, in that order, too."""


def table_of(strength: Ints, sample: int = SAMPLE) -> Ints:
    """Return the most frequent values of a sample, ascending."""
    values, counts = np.unique(strength[:: len(strength) // sample + 1], return_counts=True)
    return np.sort(values[np.argsort(-counts, kind="stable")[:TABLE]])


def numbered(strength: Ints, place: Places, sample: int = SAMPLE) -> Strengths:
    """Return the strengths at some places in their short form."""
    strength = strength[np.argsort(place, kind="stable")]
    table = table_of(strength, sample)
    number = _numbers(strength, table)
    missing = number == len(table)
    return Strengths(np.diff(table, prepend=0), number, strength[missing])


def _numbers(strength: Ints, table: Ints) -> Bytes:
    """Return where each strength stands in the table, or the table's length.

    A slot of a hash table says so at once for nearly all; the others are searched, and all where
    there are so few that the slots would take longer.
    """
    whole = np.append(table, 0)  # none is 0
    if len(strength) < _FEW:
        return _searched(strength, table, whole).astype(np.uint8)
    slots = np.zeros(1 << _SLOT_BITS, np.uint8)
    slots[_slots(table)] = np.arange(len(table))  # of several in one slot, one is found there
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
    """Return the strengths at these places; DamagedError if they are none."""
    table = np.cumsum(coded.table)  # a sum that wraps is not ascending
    check(len(table) <= TABLE and ascending(table), "a table of strengths that do not ascend")
    check((table > 0).all() and (coded.rest > 0).all(), "a strength below 1")
    check(len(coded.numbers) == len(place), "not one strength for each place")
    check(coded.numbers.max(initial=0) <= len(table), "a strength that is not in the table")
    strength = np.append(table, 0).take(coded.numbers)
    missing = np.flatnonzero(coded.numbers == len(table))
    check(len(missing) == len(coded.rest), "more or fewer strengths than are wanted")
    strength[missing] = coded.rest
    found = np.empty_like(strength)
    found[np.argsort(place, kind="stable")] = strength
    return found
