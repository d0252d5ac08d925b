"""A few rows as plain bytes, for an answer that is wanted at once.

    magic           4 bytes
    then each row   concept, feature, count, k targets, m connections, bytes of both texts
                    k target concepts, k target features, m strengths, m branches, m segments,
                    m marks, the texts

A mark is 1 where another target begins. It takes some 25 bytes a connection, and a fraction of the
time of a sheaf, which is the better one for many rows. `decode` is total, as a parcel's.
"""

import struct
from collections.abc import Sequence, Set

import numpy as np

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import Answer, Name, Neuron, Question, Row
from giaann_p2p.store.codec.cursor import Cursor
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.codec.parcel import Limits, adds_up
from giaann_p2p.store.codec.words import text_of

MAGIC = b"GIAr"
_HEAD = struct.Struct("<QQQIIII")
_SUM_BITS = 63


class PlainRows:
    """Rows that came as plain bytes; read as `DeltaRows`."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows: dict[tuple[int, int], Row] = {row.neuron: row for row in rows}

    @property
    def neurons(self) -> Set[tuple[int, int]]:
        """Those that occurred."""
        return self._rows.keys()

    def read(self, question: Question) -> Answer:
        """Return the rows asked for."""
        return [self._rows.get(neuron) for neuron in question.neurons]


def encode(rows: Sequence[Row]) -> bytes:
    """Return some rows as bytes."""
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


def decode(data: bytes | memoryview, limits: Limits) -> PlainRows:
    """Return the rows; DamagedError if they are none, or beyond the limits."""
    cursor = Cursor(data)
    check(bytes(cursor.take(len(MAGIC))) == MAGIC, "no plain rows: they start otherwise")
    rows = []
    while cursor.at < len(data):
        rows.append(_row(cursor, limits))
        check(len(rows) <= limits.neurons, "more rows than may be")
    return PlainRows(rows)


def _row(cursor: Cursor, limits: Limits) -> Row:
    """Read one row; what it says it has must be there before anything is made of it."""
    concept, feature, count, targets, size, *lengths = _HEAD.unpack(cursor.take(_HEAD.size))
    to_concept = np.frombuffer(cursor.take(8 * targets), "<u8")
    to_feature = np.frombuffer(cursor.take(8 * targets), "<u8")
    strength = np.frombuffer(cursor.take(8 * size), "<i8")
    branch = np.frombuffer(cursor.take(size), np.uint8)
    segment = np.frombuffer(cursor.take(size), np.uint8)
    marks = np.frombuffer(cursor.take(size), np.uint8)
    name, word = (bytes(cursor.take(length)) for length in lengths)
    check(count > 0 and count >> _SUM_BITS == 0, f"a row that occurred {count} times")
    check(not size or (marks[0] == 1 and int(marks.max()) == 1), "a mark that is none")
    target = marks.cumsum(dtype=np.int64)
    target -= 1
    check(int(target[-1]) + 1 == targets if size else not targets, "targets without connections")
    there = set(zip(to_concept.tolist(), to_feature.tolist(), strict=True))
    check(len(there) == targets, "a target that stands twice")
    check(not targets or int(to_concept.min()) != PRIME, "a neuron without a concept")
    place = (branch.astype(np.uint16) << 8) | segment
    check(bool(((place[1:] > place[:-1]) | (marks[1:] != 0)).all()), "places that do not ascend")
    if size:
        check(int(branch.max()) < limits.branches, "a branch beyond the model's")
        check(int(segment.max()) < limits.segments, "a segment beyond the model's")
        check(int(strength.min()) > 0, "a strength below 1")
        check(adds_up(strength), "strengths beyond 63 bits")
    said = text_of(feature, word) if feature != PRIME else None
    return Row(
        Neuron(concept, feature),
        Name(text_of(concept, name), said),
        count,
        to_concept,
        to_feature,
        target,
        branch,
        segment,
        strength,
    )
