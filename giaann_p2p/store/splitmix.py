"""Hashes of 64-bit numbers: the mixing function of the generator splitmix64.

These hashes determine the shard of every row, so the functions must never change.
"""

import numpy as np

from giaann_p2p.model.sequence import Ids

GOLDEN = 0x9E3779B97F4A7C15
"""An odd number without structure, to combine two numbers before they are mixed."""
WORD = (1 << 64) - 1
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mixed(x: Ids) -> Ids:
    """Hash each value."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_FIRST)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_SECOND)
    return x ^ (x >> np.uint64(31))


def mixed_one(x: int) -> int:
    """Hash one value; faster than `mixed` for a single one."""
    x = (x ^ (x >> 30)) * _FIRST & WORD
    x = (x ^ (x >> 27)) * _SECOND & WORD
    return x ^ (x >> 31)
