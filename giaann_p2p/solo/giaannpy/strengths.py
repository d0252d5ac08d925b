"""Converts strengths between the reference's sums of 32-bit fractions and whole units of 2^-16.

The reference adds 10 / (d + 1) for each pair of tokens d apart. In a segment of one token distance,
all increments are equal, so a strength is a count of them, and counts are exact. In a segment of a
distance in columns, increments of many token distances add up, and different ones may have the same
sum (10/3 + 10/6 = 10/2). So the exact units are unknown, and the nearest number is used. It is off
by at most half a unit for each increment, besides the rounding errors of the reference.
"""

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import UNITS, increment
from giaann_p2p.model.subwords.spec import DISTANCES, REFERENCE_COLUMN_SEGMENTS
from giaann_p2p.solo.giaannpy.tensors import Fractions

Mask = npt.NDArray[np.bool_]

SEGMENTS = REFERENCE_COLUMN_SEGMENTS + DISTANCES
"""The number of segments of the reference; those by distance in columns come first."""
_PLAIN = 4000
"""The largest count whose rounding errors together are surely below half a count."""
_INCREMENTS = np.array([0, *(increment(d) for d in range(1, DISTANCES + 1))])


def units_of(values: Fractions, segment: Ints) -> tuple[Ints, Mask]:
    """Return strengths in units, and which of them are certainly not whole counts of increments.

    No strength becomes 0: the least is one increment, or one unit.
    """
    distance = SEGMENTS - segment  # of a feature segment
    by_token = segment >= REFERENCE_COLUMN_SEGMENTS
    each = 10.0 / (np.where(by_token, distance, 1) + 1)
    count = np.maximum(np.rint(values / each), 1)
    off = np.abs(values / each - count)
    exact = values.astype(np.float32) == (count * each).astype(np.float32)
    near = (count <= _PLAIN) & (off <= _drift(count))
    counted = count.astype(np.int64) * _INCREMENTS[np.where(by_token, distance, 0)]
    nearest = np.maximum(np.rint(values * UNITS), 1).astype(np.int64)
    return np.where(by_token, counted, nearest), by_token & ~exact & ~near


def uneven(values: Fractions, segment: Ints) -> Mask:
    """Return which strengths are known only to the nearest unit.

    They are those by distance in columns that are not whole numbers of units.
    """
    by_column = segment < REFERENCE_COLUMN_SEGMENTS
    found: Mask = by_column & (np.rint(values * UNITS) != values * UNITS)
    return found


def values_of(units: Ints, segment: Ints) -> Fractions:
    """Return units as fractions that `units_of` turns into the same units again.

    A whole count becomes the fraction that the reference would write if it did not round sums.
    """
    distance = SEGMENTS - segment
    by_token = segment >= REFERENCE_COLUMN_SEGMENTS
    step = np.where(by_token, _INCREMENTS[np.where(by_token, distance, 1)], 1)
    each = 10.0 / (np.where(by_token, distance, 1) + 1)
    counted = (units // step * each).astype(np.float32).astype(np.float64)
    return np.where(by_token, counted, units / UNITS)


def _drift(count: Fractions) -> Fractions:
    """Return how far the reference's sum of this many equal fractions may be off, in counts.

    Each addition rounds the sum to 24 bits, and the increment itself was rounded.
    """
    return count * (count + 3) / 2 * 2.0**-24
