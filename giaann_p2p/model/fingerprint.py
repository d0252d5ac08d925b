"""Salted fingerprints of knowledge: only a peer that has the knowledge can compute them.

The salt determines a number for each neuron and each connection, which is multiplied by its count
or strength. So fingerprints add up like knowledge: the fingerprint of a total is the sum of its
parts' fingerprints, and subtracting the fingerprints of the last chunks yields the fingerprint from
before these chunks arrived. The sums are 64-bit words that overflow, the same on every machine.
Texts are not included, because they do not add up; a digest (`model.digest`) includes them.
"""

import hashlib

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.sequence import Ids, Ints

Fingerprint = npt.NDArray[np.uint64]
"""Shape [LANES]: independent sums of 64 bits each, together too many bits to guess."""

LANES = 2
_KEYS = 3
_AT_ONCE = 1 << 18
"""The number of connections processed at a time, a bound on memory."""
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def none() -> Fingerprint:
    """Return the fingerprint of empty knowledge."""
    return np.zeros(LANES, np.uint64)


def fingerprint(delta: Delta, salt: bytes) -> Fingerprint:
    """Return the fingerprint of a delta, or of a shard's content, under a salt."""
    found: Fingerprint = _of_rows(delta, salt).sum(axis=1, dtype=np.uint64)
    return found


def fingerprints(delta: Delta, salt: bytes, part: Ints, parts: int) -> list[Fingerprint]:
    """Return the fingerprints of a delta's parts: the row of neuron i belongs to `part[i]`."""
    found = np.zeros((LANES, parts), np.uint64)
    for lane, rows in zip(found, _of_rows(delta, salt), strict=True):
        np.add.at(lane, part, rows)
    return list(found.T)


def _of_rows(delta: Delta, salt: bytes) -> npt.NDArray[np.uint64]:
    """Return the fingerprint of each neuron's row; shape [LANES, neurons]."""
    seeds = hashlib.blake2b(salt, digest_size=8 * LANES * _KEYS, person=b"giaann prints").digest()
    keys = np.frombuffer(seeds, "<u8").astype(np.uint64).reshape(LANES, _KEYS, 1)
    at_concept, at_feature, at_source = keys.swapaxes(0, 1)  # [LANES, 1]
    reached = _mixed(_mixed(delta.concept ^ at_concept) + (delta.feature ^ at_feature))
    fires = _mixed(reached + at_source)  # [LANES, V] makes a connection differ from its reverse
    found = fires * delta.count.astype(np.uint64)
    for first in range(0, delta.connections, _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        place = delta.branch[some].astype(np.uint64) << np.uint64(8)
        place |= delta.segment[some].astype(np.uint64)
        pair = fires[:, delta.source[some]] + reached[:, delta.target[some]]  # [LANES, m]
        units = delta.strength[some].astype(np.uint64)
        sums = np.zeros((LANES, len(units) + 1), np.uint64)  # of all connections before each
        np.cumsum(_mixed(_mixed(pair) ^ place) * units, axis=1, out=sums[:, 1:])
        ends = sums[:, np.clip(delta.row_starts - first, 0, len(units))]
        found += ends[:, 1:] - ends[:, :-1]
    return found


def _mixed(x: Ids) -> Ids:
    """Spread every bit over all bits, as the generator splitmix64 does."""
    x = (x ^ (x >> _SHIFT_1)) * _MIX_1  # a new array, which may be changed in place
    x ^= x >> _SHIFT_2
    x *= _MIX_2
    x ^= x >> _SHIFT_3
    return x
