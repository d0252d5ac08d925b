"""Natural logarithms as whole numbers: the same on every machine, for choices that must be equal.

Math libraries differ in the last bits of a logarithm, and so do processors. Here it is a sum of
three whole numbers in units of 2^-48: the exponent times ln 2, an entry of a table that is made of
whole numbers only, and the rest, a short polynomial in operations that IEEE 754 rounds correctly.
An entry is off by at most half a unit, and so is the rounded rest; the polynomial is off by less
than 2^-57. With the exponent's part that is below 2^-43, or 1.2e-13, for values from 2^-30 to 2^30.
"""

from functools import cache

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ints

Floats = npt.NDArray[np.float64]

UNIT_BITS = 48
LOG_UNITS = 1 << UNIT_BITS
"""The integer that stands for a logarithm of 1."""

_TABLE_BITS = 11
_STEPS = 1 << _TABLE_BITS
_MANTISSA_BITS, _BIAS = 52, 1023
_REST_BITS = _MANTISSA_BITS - _TABLE_BITS
_DIVISORS = (np.arange(_STEPS, 2 * _STEPS) << _REST_BITS).astype(np.float64)
"""The mantissas whose first bits select a table entry and whose other bits are 0: all are exact."""
_GUARD_BITS = 96
"""The fractional bits of all numbers while the table is made."""
_LEVELS = 40
"""The levels of the continued fraction for tanh."""
_LN_2 = 195103586505167
"""ln 2 in units of 2^-48, equal to the last entry of the table."""
_POWER_BITS = 13
_STEP_BITS = UNIT_BITS - _POWER_BITS
"""A step of the table of powers is 2^-13: in units of 2^-48, 1 shifted by this many bits."""


def logarithms(values: Floats) -> Ints:
    """Return the logarithms of positive numbers that are not subnormal, in units of 2^-48.

    Most steps are done in place, because each new array costs time.
    """
    bits = np.ascontiguousarray(values).view(np.int64)
    whole: Ints = bits >> _MANTISSA_BITS  # becomes the logarithm
    whole -= _BIAS
    whole *= _LN_2
    step = bits >> _REST_BITS
    step &= _STEPS - 1
    whole += log_table().take(step)
    z = (bits & ((1 << _REST_BITS) - 1)) / _DIVISORS.take(step)
    ln = z * (1 / 4)  # value / 2^exponent = (1 + step / STEPS) (1 + z)
    for term in (1 / 3, 1 / 2, 1.0):
        np.subtract(term, ln, out=ln)
        ln *= z
    ln *= LOG_UNITS
    whole += np.rint(ln, out=ln).astype(np.int64)
    return whole


@cache
def log_table() -> Ints:
    """Return the logarithms of 1 + i / 2048 for i = 0 ... 2048, in units of 2^-48.

    Each is the one before it plus ln((a + 1) / a) = 2 atanh(1 / (2 a + 1)), with a = 2048 + i.
    """
    found, total = [0], 0
    for a in range(_STEPS, 2 * _STEPS):
        total += 2 * _atanh(2 * a + 1)
        found.append(total)
    half = 1 << (_GUARD_BITS - UNIT_BITS - 1)
    return np.array([(value + half) >> (_GUARD_BITS - UNIT_BITS) for value in found], np.int64)


def _atanh(inverse: int) -> int:
    """Return atanh(1 / inverse) = 1/x + 1/(3 x^3) + 1/(5 x^5) ... in units of 2^-96."""
    power = (1 << _GUARD_BITS) // inverse
    total, n = 0, 1
    while power:
        total += power // n
        power //= inverse * inverse
        n += 2
    return total


def exponentials(logs: Ints) -> Floats:
    """Return e to the power of logarithms in units of 2^-48 that are at most 0.

    With -logs = n ln 2 + step / 8192 + z, the result is 2^-n, times an entry of a table, times a
    short polynomial for e^-z, which is off by less than 2^-56 of it. The table and each operation
    are off by half a unit in the last place, and n ln 2 by n half units of 2^-48. Far below 2^-1000
    the result is 0.
    """
    rest = -logs
    n = rest // _LN_2
    rest -= n * _LN_2
    z: Floats = np.multiply(rest & ((1 << _STEP_BITS) - 1), 1 / LOG_UNITS)
    found: Floats = z * (1 / 6)
    for term in (1 / 2, 1.0):
        np.subtract(term, found, out=found)
        found *= z
    np.subtract(1.0, found, out=found)
    found *= power_table().take(rest >> _STEP_BITS)
    found *= _halves().take(n, mode="clip")
    return found


@cache
def power_table() -> Floats:
    """Return e^(-i / 8192) for i = 0 ... 5678, which is as far as ln 2.

    Each is the one before it times e^(-1 / 8192), in whole numbers of 2^-96.
    """
    one = 1 << _GUARD_BITS
    factor, term, n = one, one, 1
    while term:  # 1 - x + x^2 / 2 - x^3 / 6 ...
        term = (term >> _POWER_BITS) // n
        factor += -term if n % 2 else term
        n += 1
    found = [one]
    while len(found) <= _LN_2 >> _STEP_BITS:
        found.append(found[-1] * factor >> _GUARD_BITS)
    return np.array([power / one for power in found])  # Python rounds a quotient to the nearest


@cache
def _halves() -> Floats:
    """Return 2^-n for n = 0 ... 1022, and 0."""
    return np.append(np.ldexp(1.0, -np.arange(_BIAS)), 0.0)


def tanh(x: Floats) -> Floats:
    """Return tanh(x) for x >= 0, in operations that every machine rounds alike.

    It is the continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))), which is exact to the last
    few bits for x up to 20; beyond, tanh(x) is 1 to the last bit.
    """
    squared = np.minimum(x, 20.0) * np.minimum(x, 20.0)
    below: Floats = np.full_like(squared, 2.0 * _LEVELS + 1)
    for level in range(_LEVELS - 1, -1, -1):
        below = (2.0 * level + 1) + squared / below
    return np.where(x > 20, 1.0, np.minimum(x, 20.0) / below)
