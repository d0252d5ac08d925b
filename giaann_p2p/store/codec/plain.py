"""Encodes a few rows as plain bytes, for an answer with low latency.

    magic           4 bytes
    then each row   concept, feature, count, k targets, m connections, bytes of both texts
                    k target concepts, k target features, m strengths, m branches, m segments,
                    m marks, the texts

A mark is 1 for the first connection to each target, and 0 for the others. This form takes some 25
bytes per connection, and a fraction of the time of a sheaf; for many rows a sheaf is better.
`decode` is total: for any bytes it returns valid rows or raises DamagedError.
"""

import struct
from collections.abc import Sequence, Set

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Bytes, first_of_runs
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import Answer, Name, Neuron, Question, Row
from giaann_p2p.model.sequence import Ids
from giaann_p2p.store.codec.cursor import Cursor
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.codec.parcel import Limits, adds_up
from giaann_p2p.store.codec.words import text_of
from giaann_p2p.store.cuts import part_of

MAGIC = b"GIAr"
MOST_CONNECTIONS = 256
"""Maximum number of connections in an answer for which this encoding is used. It is quick to make,
but takes several times as many bytes as a sheaf."""
_HEAD = struct.Struct("<QQQIIII")
_TARGET, _CONNECTION = 16, 11
"""The encoded bytes per target of a row, and per connection."""
_SUM_BITS = 63
_MARKS = b"\0\1"
_EVERY = bytes(range(256))
_MIX = np.uint64(0x9E3779B97F4A7C15)


class PlainRows:
    """Rows decoded from plain bytes, with the interface of `DeltaRows`."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows: dict[tuple[int, int], Row] = {row.neuron: row for row in rows}

    @property
    def neurons(self) -> Set[tuple[int, int]]:
        """The neurons that have a row in this answer."""
        return self._rows.keys()

    def read(self, question: Question) -> Answer:
        """Return the rows of the question's neurons, in order; None for a neuron without one."""
        return [self._rows.get(neuron) for neuron in question.neurons]


def encode(rows: Sequence[Row]) -> bytes:
    """Encode some rows as plain bytes."""
    return b"".join([MAGIC, *(piece for row in rows for piece in _pieces(row))])


def _pieces(row: Row) -> list[bytes]:
    texts = [row.name.concept.encode(), (row.name.feature or "").encode()]
    sizes = len(row.target_concept), len(row.target), *map(len, texts)
    marks = first_of_runs(row.target)
    return [
        _HEAD.pack(*row.neuron, row.count, *sizes),
        row.target_concept.tobytes(),
        row.target_feature.tobytes(),
        row.strength.tobytes(),
        row.branch.tobytes(),
        row.segment.tobytes(),
        marks.tobytes(),
        *texts,
    ]


def sizes_of(data: bytes) -> tuple[int, int]:
    """Return the number of rows, and of connections, in bytes that `encode` returned.

    The bytes are trusted, not checked.
    """
    rows = connections = 0
    at = len(MAGIC)
    while at < len(data):
        _, _, _, targets, size, *lengths = _HEAD.unpack_from(data, at)
        at += _HEAD.size + _TARGET * targets + _CONNECTION * size + sum(lengths)
        rows += 1
        connections += size
    return rows, connections


def decode(data: bytes | memoryview, limits: Limits) -> PlainRows:
    """Decode rows from plain bytes; DamagedError if they are invalid or exceed the limits."""
    cursor = Cursor(data)
    check(bytes(cursor.take(len(MAGIC))) == MAGIC, "not plain rows: they start with other bytes")
    rows = []
    while cursor.at < len(data):
        rows.append(_row(cursor, limits))
        check(len(rows) <= limits.neurons, "there are more rows than the limit")
    return PlainRows(rows)


def _row(cursor: Cursor, limits: Limits) -> Row:
    """Decode one row; memory for its stated sizes is allocated only if that many bytes are present.

    A reader is waiting for the result. So checks use methods of bytes where they can, because each
    call to numpy costs more.
    """
    concept, feature, count, targets, size, *lengths = _HEAD.unpack(cursor.take(_HEAD.size))
    to_concept = np.frombuffer(cursor.take(8 * targets), "<u8")
    to_feature = np.frombuffer(cursor.take(8 * targets), "<u8")
    strength = np.frombuffer(cursor.take(8 * size), "<i8")
    branch, segment, marks = (bytes(cursor.take(size)) for _ in range(3))
    name, word = (bytes(cursor.take(length)) for length in lengths)
    check(count >> _SUM_BITS == 0, f"a row's count is out of range: {count}")
    check(not marks.translate(None, _MARKS) and marks[:1] != b"\0", "a row's marks are invalid")
    check(marks.count(1) == targets, "a row's marks do not match its number of targets")
    _check_targets(to_concept, to_feature)
    place = np.frombuffer(branch, np.uint8), np.frombuffer(segment, np.uint8)
    first = np.frombuffer(marks, np.bool_)
    if size:
        check(not branch.translate(None, _EVERY[: limits.branches]), "a branch is not in the model")
        check(
            not segment.translate(None, _EVERY[: limits.segments]), "a segment is not in the model"
        )
        check(np.minimum.reduce(strength) > 0, "a strength is below 1")
        check(adds_up(strength), "a row's strengths add up to more than 63 bits")
        _check_order(*place, first)
    column = text_of(concept, name)
    check(count > 0 or (size > 0 and part_of(column) is not None), "a row never occurred")
    said = text_of(feature, word) if feature != PRIME else None
    target = np.add.accumulate(first, dtype=np.int64)
    target -= 1
    return Row(
        Neuron(concept, feature),
        Name(column, said),
        count,
        to_concept,
        to_feature,
        target,
        *place,
        strength,
    )


def _check_targets(concept: Ids, feature: Ids) -> None:
    named = concept.tolist()
    check(PRIME not in named, "a neuron has no concept")
    if len({*(concept * _MIX + feature).tolist()}) < len(named):  # hashes hardly ever collide
        there = set(zip(named, feature.tolist(), strict=True))
        check(len(there) == len(named), "a target is listed twice")


def _check_order(branch: Bytes, segment: Bytes, first: npt.NDArray[np.bool_]) -> None:
    place = np.left_shift(branch, 8, dtype=np.uint16)
    place |= segment
    further = place[1:] > place[:-1]
    further |= first[1:]
    check(0 not in further.tobytes(), "the places of a target do not ascend")
