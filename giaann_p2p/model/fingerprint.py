"""A salted sum over knowledge: only who has the knowledge can work it out, once the salt is told.

Each neuron and each connection has a number that the salt decides, and it counts as often as it was
learned. So fingerprints add up as knowledge does: that of a total is the sum of its parts', and
what somebody held before the last chunks came is found by taking these chunks' away. They add up in
words of 64 bits that overflow, the same on every machine. Texts are not in them, for these do not
add up; a digest (`model.digest`) has them.
"""

import hashlib

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.sequence import Ids

Fingerprint = npt.NDArray[np.uint64]
"""[LANES] What it is, twice over: guessing it is hopeless."""

LANES = 2
_KEYS = 3
_AT_ONCE = 1 << 18
"""Connections that are worked on at a time."""
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def none() -> Fingerprint:
    """Return the fingerprint of nothing."""
    return np.zeros(LANES, np.uint64)


def fingerprint(delta: Delta, salt: bytes) -> Fingerprint:
    """Return the fingerprint of a delta, or of what a shard holds, under a salt."""
    seeds = hashlib.blake2b(salt, digest_size=8 * LANES * _KEYS, person=b"giaann prints").digest()
    keys = np.frombuffer(seeds, "<u8").astype(np.uint64).reshape(LANES, _KEYS, 1)
    at_concept, at_feature, at_source = keys.swapaxes(0, 1)  # [LANES, 1]
    reached = _mixed(_mixed(delta.concept ^ at_concept) + (delta.feature ^ at_feature))
    fires = _mixed(reached + at_source)  # [LANES, V] so that a connection back is another one
    found: Fingerprint = (fires * delta.count.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
    for first in range(0, delta.connections, _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        place = delta.branch[some].astype(np.uint64) << np.uint64(8)
        place |= delta.segment[some].astype(np.uint64)
        pair = fires[:, delta.source[some]] + reached[:, delta.target[some]]  # [LANES, m]
        units = delta.strength[some].astype(np.uint64)
        found += (_mixed(_mixed(pair) ^ place) * units).sum(axis=1, dtype=np.uint64)
    return found


def _mixed(x: Ids) -> Ids:
    """Spread every bit over all bits, as the generator splitmix64 does."""
    x = (x ^ (x >> np.uint64(30))) * _MIX_1
    x = (x ^ (x >> np.uint64(27))) * _MIX_2
    return x ^ (x >> np.uint64(31))
