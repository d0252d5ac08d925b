"""The digest of knowledge: equal exactly for equal knowledge, whatever its history.

It is the sum of the digests of all rows. So the digests of shards, or of peers' parts, add up to
that of the whole, and a changed row costs one subtraction and one addition.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping

import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.sequence import Ints

DIGEST_BYTES = 32
_MODULUS = 1 << 8 * DIGEST_BYTES
_AT_ONCE = 1 << 18
_ONE_NAME, _TWO_NAMES = struct.Struct("<4Q"), struct.Struct("<5Q")
_CONNECTION = np.dtype(
    [("concept", "<u8"), ("feature", "<u8"), ("branch", "u1"), ("segment", "u1"), ("units", "<i8")]
)


def row_digests(delta: Delta) -> Iterator[bytes]:
    """Yield the digest of each row: of its neuron's number, names and count, and connections."""
    lengths, texts = delta.lengths, {word: text.encode() for word, text in delta.names.items()}
    rows = np.flatnonzero((delta.count > 0) | (lengths > 0))
    ends = np.cumsum(lengths[rows])
    first = 0
    while first < len(rows):  # in batches of rows, so that few connections are copied at once
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + _AT_ONCE, "right")))
        yield from _digests(delta, rows[first:last], texts)
        first = last


def digest(delta: Delta) -> int:
    """Return the digest of a delta: the sum of its rows' digests."""
    return added(int.from_bytes(row, "little") for row in row_digests(delta))


def added(digests: Iterator[int]) -> int:
    """Return the sum of digests, modulo 2^256."""
    return sum(digests) % _MODULUS


def readable(number: int) -> str:
    """Return a digest as 64 hex digits."""
    return f"{number:0{2 * DIGEST_BYTES}x}"


def _digests(delta: Delta, rows: Ints, texts: Mapping[int, bytes]) -> Iterator[bytes]:
    starts = delta.row_starts[rows[0] : rows[-1] + 2]
    start, end = int(starts[0]), int(starts[-1])
    target = delta.target[start:end]
    table = np.empty(end - start, _CONNECTION)
    table["concept"], table["feature"] = delta.concept[target], delta.feature[target]
    table["branch"], table["segment"] = delta.branch[start:end], delta.segment[start:end]
    table["units"] = delta.strength[start:end]
    data = memoryview(table.tobytes())
    ends = ((starts - start) * _CONNECTION.itemsize)[rows - rows[0]]
    numbers = delta.concept[rows], delta.feature[rows], delta.count[rows], ends
    lasts = ends + delta.lengths[rows] * _CONNECTION.itemsize
    name_of, blake2b = texts.get, hashlib.blake2b  # this loop takes most of checking a delta
    for concept, feature, count, at, last in zip(
        *[each.tolist() for each in (*numbers, lasts)], strict=True
    ):
        name = name_of(concept, b"")
        if feature == PRIME:
            head = _ONE_NAME.pack(concept, feature, count, len(name)) + name
        else:
            other = name_of(feature, b"")
            head = _TWO_NAMES.pack(concept, feature, count, len(name), len(other)) + name + other
        whole = blake2b(head, digest_size=DIGEST_BYTES)
        whole.update(data[at:last])
        yield whole.digest()
