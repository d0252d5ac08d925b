"""Encodes a few rows as plain bytes, for an answer with low latency.

    magic           4 bytes
    then each row   concept, feature, count, k targets, m connections, bytes of both texts
                    k target concepts, k target features, m strengths, m branches, m segments,
                    m marks, the texts

A mark is 1 where the next target begins. This form takes some 25 bytes per connection, and a
fraction of the time of a sheaf; for many rows a sheaf is better. `decode` is total, as for a
parcel.
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

MAGIC = b"GIAr"
_HEAD = struct.Struct("<QQQIIII")
_TARGET, _CONNECTION = 16, 11
"""Bytes per target, and bytes per connection."""
_SUM_BITS = 63
_MARKS = b"\0\1"
_EVERY = bytes(range(256))
_MIX = np.uint64(0x9E3779B97F4A7C15)


class PlainRows:
    """Rows decoded from plain bytes; read like `DeltaRows`."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows: dict[tuple[int, int], Row] = {row.neuron: row for row in rows}

    @property
    def neurons(self) -> Set[tuple[int, int]]:
        """The neurons of all rows."""
        return self._rows.keys()

    def read(self, question: Question) -> Answer:
        """Return the rows asked for."""
        return [self._rows.get(neuron) for neuron in question.neurons]


def encode(rows: Sequence[Row]) -> bytes:
    """Return the encoding of some rows."""
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
    """Return the number of rows and of connections in bytes that `encode` returned; trusts them."""
    rows = connections = 0
    at = len(MAGIC)
    while at < len(data):
        _, _, _, targets, size, *lengths = _HEAD.unpack_from(data, at)
        at += _HEAD.size + _TARGET * targets + _CONNECTION * size + sum(lengths)
        rows += 1
        connections += size
    return rows, connections


def decode(data: bytes | memoryview, limits: Limits) -> PlainRows:
    """Return the rows; DamagedError if they are invalid, or exceed the limits."""
    cursor = Cursor(data)
    check(bytes(cursor.take(len(MAGIC))) == MAGIC, "no plain rows: they start otherwise")
    rows = []
    while cursor.at < len(data):
        rows.append(_row(cursor, limits))
        check(len(rows) <= limits.neurons, "more rows than may be")
    return PlainRows(rows)


def _row(cursor: Cursor, limits: Limits) -> Row:
    """Decode one row; nothing is built from its stated sizes before that many bytes are present.

    A reader waits for the result: checks use methods of bytes where they can, because each call to
    numpy costs more.
    """
    concept, feature, count, targets, size, *lengths = _HEAD.unpack(cursor.take(_HEAD.size))
    to_concept = np.frombuffer(cursor.take(8 * targets), "<u8")
    to_feature = np.frombuffer(cursor.take(8 * targets), "<u8")
    strength = np.frombuffer(cursor.take(8 * size), "<i8")
    branch, segment, marks = (bytes(cursor.take(size)) for _ in range(3))
    name, word = (bytes(cursor.take(length)) for length in lengths)
    check(count > 0 and count >> _SUM_BITS == 0, f"a row that occurred {count} times")
    check(not marks.translate(None, _MARKS) and marks[:1] != b"\0", "a mark that is none")
    check(marks.count(1) == targets, "targets without connections")
    _check_targets(to_concept, to_feature)
    place = np.frombuffer(branch, np.uint8), np.frombuffer(segment, np.uint8)
    first = np.frombuffer(marks, np.bool_)
    if size:
        check(not branch.translate(None, _EVERY[: limits.branches]), "a branch beyond the model's")
        check(
            not segment.translate(None, _EVERY[: limits.segments]), "a segment beyond the model's"
        )
        check(np.minimum.reduce(strength) > 0, "a strength below 1")
        check(adds_up(strength), "strengths beyond 63 bits")
        _check_order(*place, first)
    said = text_of(feature, word) if feature != PRIME else None
    target = np.add.accumulate(first, dtype=np.int64)
    target -= 1
    return Row(
        Neuron(concept, feature),
        Name(text_of(concept, name), said),
        count,
        to_concept,
        to_feature,
        target,
        *place,
        strength,
    )


def _check_targets(concept: Ids, feature: Ids) -> None:
    named = concept.tolist()
    check(PRIME not in named, "a neuron without a concept")
    if len({*(concept * _MIX + feature).tolist()}) < len(named):  # hashes hardly ever collide
        there = set(zip(named, feature.tolist(), strict=True))
        check(len(there) == len(named), "a target that stands twice")


def _check_order(branch: Bytes, segment: Bytes, first: npt.NDArray[np.bool_]) -> None:
    place = np.left_shift(branch, 8, dtype=np.uint16)
    place |= segment
    further = place[1:] > place[:-1]
    further |= first[1:]
    check(0 not in further.tobytes(), "places that do not ascend")
