"""The ranks of numbers: their order among the distinct ones, starting at 0."""

from typing import Any

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ints

_SPARSE = 16
"""The ratio of all possible numbers to the given ones above which sorting the latter is faster than
an array over all."""


def ranked(number: npt.NDArray[Any], end: int) -> tuple[Ints, Ints]:
    """Return the distinct numbers, ascending, and each given number's index among them.

    All numbers must be below `end`.
    """
    if end > _SPARSE * len(number):
        return np.unique(number, return_inverse=True)
    there = np.zeros(end, np.bool_)
    there[number] = True
    (used,) = there.nonzero()
    rank = np.empty(end, np.int64)
    rank[used] = np.arange(len(used))
    return used, rank[number]
