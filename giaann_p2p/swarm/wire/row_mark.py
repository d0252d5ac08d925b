"""Marks: short salted digests of rows, with which a reader checks whether a cached row is current.

A frequent word's row may have 300 kB and seldom changes. So a reader sends the mark of the row that
it has cached, and the holder sends its own row only if the two marks differ.

1. Equal rows have equal marks, whatever the order of their targets and connections, because the
   hashes of the connections are added up. Different rows have different marks, except with a
   probability of 2^-64.
2. The salt is drawn for each call, after the cached row came, so the peer that sent the row cannot
   know it. Otherwise a liar could make up a row that has the mark of the true one, and honest peers
   would confirm it. For the same reason the salt keys each of the hashes: rows with a given plain
   sum would be easy to find.
"""

import hashlib
import struct

import numpy as np

from giaann_p2p.model.rows import Row
from giaann_p2p.model.sequence import Ids

MARK_BYTES = 8
SALT_BYTES = 16
LEAST = 64
"""Minimum number of connections of a row that has a mark. A shorter row is simply read again,
because computing two marks takes longer than sending it."""
_HEAD = struct.Struct("<6Q")
_KEYS = 4
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_PLACE_BITS = np.uint64(8)


def mark(row: Row, salt: bytes) -> bytes:
    """Return the mark of a row's content: its neuron, name, count and connections."""
    concept, feature = row.name.concept.encode(), row.name.feature
    sizes = len(row.strength), len(concept), _total(row, salt)
    rest = b"" if feature is None else b"+" + feature.encode()
    data = _HEAD.pack(*row.neuron, row.count, *sizes) + concept + rest
    return hashlib.blake2b(data, key=salt, digest_size=MARK_BYTES).digest()


def _total(row: Row, salt: bytes) -> int:
    """Return the sum of the hashes of a row's connections."""
    data = hashlib.blake2b(key=salt, digest_size=8 * _KEYS).digest()
    keys = np.frombuffer(data, "<u8").astype(np.uint64)
    target = _mixed(row.target_concept + keys[0])  # shape [k]
    target = _mixed(target + row.target_feature + keys[1])  # shape [k]
    link = target[row.target]  # shape [m]
    link += row.branch.astype(np.uint64) << _PLACE_BITS
    link += row.segment
    link = _mixed(link + keys[2])  # shape [m]
    link += row.strength.astype(np.uint64)
    link = _mixed(_mixed(link) + keys[3])  # shape [m]; twice, so that differences are unpredictable
    return int(link.sum(dtype=np.uint64))


def _mixed(numbers: Ids) -> Ids:
    """Mix the bits of each number, in place: a difference in any bit changes half of all bits."""
    for shift, factor in zip(_SHIFTS, (_FIRST, _SECOND), strict=False):
        numbers ^= numbers >> shift
        numbers *= factor
    numbers ^= numbers >> _SHIFTS[-1]
    return numbers
