"""Sheaves: the encoding of an answer with many rows, in any order, so that none must be sorted.

    magic           4 bytes
    sizes           rows, neurons, connections, words, bytes of text, branches, segments
    body            the sixteen arrays of `Words`, rows, counts, `Links` and `Strengths`

A sheaf is about as small as a parcel of the same rows, and much faster to encode and decode: its
neurons are unordered, and a neuron that is only a target has no row. So equal rows may have
different sheaves, and a sheaf is never digested or stored. Answers with few connections use `plain`
instead; `swarm.replication.answers` chooses. `decode` is total: for any bytes it returns valid rows
or raises DamagedError.
"""

import struct
from collections.abc import Set
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import Answer, Name, Neuron, Question, Row
from giaann_p2p.model.sequence import Ids, Ints, Names
from giaann_p2p.store.codec.arrays import pack, unpack
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.codec.links import Links, Shape, Traced, chained, traced
from giaann_p2p.store.codec.parcel import Limits, adds_up, check_sizes
from giaann_p2p.store.codec.strengths import TABLE, Strengths
from giaann_p2p.store.codec.words import Neurons, Words, neurons_of, words_of
from giaann_p2p.store.cuts import part_of

MAGIC = b"GIAt"
_SIZES = struct.Struct("<IIIIIHH")
_START = len(MAGIC) + _SIZES.size
_SAMPLE = 1 << 12
_STEPS = "as narrow as may be"
_TYPES = ("u4", "u8", "u4", "u1", "u4", "u4", "u4", "i8", "u4", "u4", _STEPS, "i8", "u1", "i8")


class Sheaf(NamedTuple):
    """R rows with M connections among V distinct neurons of W words, not encoded."""

    words: Ids
    """Shape [W + 1]: PRIME, then the ids of the words, ascending."""
    concept: Ints
    """Shape [V]: the index of each neuron's concept among the words."""
    feature: Ints
    """Shape [V]: the index of each neuron's feature among the words; 0 for the prime feature."""
    names: Names
    """The text of every concept and feature of a row."""
    row: Ints
    """Shape [R]: the index of each row's neuron among the V neurons."""
    counts: Ints
    """Shape [R]: how often each row's neuron occurred; 0 in a part of a cut column."""
    starts: Ints
    """Shape [R + 1]: where each row's connections start, and the end of the last."""
    target: Ints
    """Shape [M]: the index of each connection's target neuron. Invariant: ascending in each row."""
    place: npt.NDArray[Any]
    """Shape [M]: each connection's branch and segment in one number. Invariant: it ascends among a
    row's connections to one target."""
    strength: Ints
    """Shape [M]: the strength of each connection."""


class Sizes(NamedTuple):
    """The sizes that a sheaf states in its head; `text` is in bytes."""

    rows: int
    neurons: int
    connections: int
    words: int
    text: int
    branches: int
    segments: int


class SheafRows:
    """Rows decoded from a sheaf, with the interface of `DeltaRows`."""

    def __init__(self, found: Neurons, row: Ints, count: Ints, links: Traced) -> None:
        self._names, self._links = found.names, links
        named = zip(found.concept[row].tolist(), found.feature[row].tolist(), strict=True)
        self._at: dict[tuple[int, int], int] = dict(zip(named, range(len(row)), strict=True))
        self._count, self._first = count.tolist(), links.rows.tolist()
        self._start = links.ends[links.rows].tolist()
        self._concept, self._feature = found.concept[links.target], found.feature[links.target]
        lengths = links.ends[1:] - links.ends[:-1]
        number = np.arange(len(lengths)) - links.rows[:-1].repeat(np.diff(links.rows))
        self._target = number.repeat(lengths)

    @property
    def neurons(self) -> Set[tuple[int, int]]:
        """The neurons that have a row in this answer."""
        return self._at.keys()

    def read(self, question: Question) -> Answer:
        """Return the rows of the question's neurons, in order; None for a neuron without one."""
        return [self._read(neuron) for neuron in question.neurons]

    def _read(self, neuron: Neuron) -> Row | None:
        at = self._at.get(neuron)
        if at is None:
            return None
        links, names = self._links, self._names
        start, end = self._start[at], self._start[at + 1]
        first, last = self._first[at], self._first[at + 1]
        concept, feature = neuron
        return Row(
            neuron,
            Name(names[concept], None if feature == PRIME else names[feature]),
            self._count[at],
            self._concept[first:last],
            self._feature[first:last],
            self._target[start:end],
            links.branch[start:end],
            links.segment[start:end],
            links.strength[start:end],
        )


def encode(sheaf: Sheaf, branches: int, segments: int) -> bytes:
    """Encode a sheaf as bytes; `branches` and `segments` are the model's."""
    shape = Shape(branches, segments)
    words = words_of(sheaf.words, sheaf.concept, sheaf.feature, sheaf.names)
    place = sheaf.place.astype(shape.dtype)
    links, strengths = chained(
        sheaf.target, sheaf.starts, place, sheaf.strength, shape, sample=_SAMPLE
    )
    sizes = Sizes(
        len(sheaf.row),
        len(sheaf.concept),
        len(sheaf.target),
        len(words.lengths),
        len(words.texts),
        *shape,
    )
    arrays: list[npt.NDArray[Any]] = [
        *words,
        sheaf.row.astype(np.uint32),
        sheaf.counts,
        *links,
        *strengths,
    ]
    return MAGIC + _SIZES.pack(*sizes) + pack(arrays)


def decode(data: bytes | memoryview, limits: Limits) -> SheafRows:
    """Decode the rows of a sheaf; DamagedError if they are invalid or exceed the limits."""
    sizes = sizes_of(data)
    check_sizes(sizes, limits)
    most = sizes.rows + sizes.connections
    check(sizes.rows <= sizes.neurons <= most, "the number of neurons does not fit the rows")
    arrays = unpack(data, len(_TYPES), _most_items(sizes), _START)
    shape = Shape(sizes.branches, sizes.segments)
    _check_arrays(arrays, sizes, shape)
    words, row, count, links = Words(*arrays[:6]), arrays[6], arrays[7], Links(*arrays[8:11])
    found = neurons_of(words)
    _check_rows(row, count, found)
    reached = traced(links, Strengths(*arrays[11:]), shape, sizes.neurons)
    lengths = np.diff(reached.ends[reached.rows])
    check(((count > 0) | (lengths > 0)).all(), "a row is empty")
    parts = {*found.concept[row[count == 0]].tolist()}
    check(all(part_of(found.names[word]) for word in parts), "a row never occurred")
    check(
        adds_up(count) and adds_up(reached.strength),
        "the sum of counts or strengths exceeds 63 bits",
    )
    return SheafRows(found, row, count, reached)


def sizes_of(data: bytes | memoryview) -> Sizes:
    """Return the sizes that a sheaf states in its first bytes; they are not checked."""
    check(len(data) >= _START, f"not a sheaf: only {len(data)} bytes")
    check(bytes(data[: len(MAGIC)]) == MAGIC, "not a sheaf: it starts with other bytes")
    return Sizes(*_SIZES.unpack_from(data, len(MAGIC)))


def _most_items(sizes: Sizes) -> int:
    words = 2 * sizes.words + sizes.text + 2 * sizes.neurons
    return words + 3 * sizes.rows + 4 * sizes.connections + TABLE


def _check_arrays(arrays: list[npt.NDArray[Any]], sizes: Sizes, shape: Shape) -> None:
    names = [*Words._fields, "rows", "counts", *Links._fields, *Strengths._fields]
    for array, name, wanted in zip(arrays, names, _TYPES, strict=True):
        dtype = shape.dtype if wanted == _STEPS else np.dtype(wanted)
        if array.dtype != dtype:
            raise DamagedError(f"the array of {name} has type {array.dtype}, not {dtype}")
    neurons, rows = [sizes.neurons] * 2, [sizes.rows] * 3
    stated = (None, None, sizes.words, sizes.text, *neurons, *rows, None, sizes.connections)
    for array, name, size in zip(arrays, names, stated, strict=False):
        if size not in (None, len(array)):
            raise DamagedError(f"the length of {name} is {len(array)}, not {size}")


def _check_rows(row: Ints, count: Ints, found: Neurons) -> None:
    check(not len(row) or row.max() < len(found.concept), "a row belongs to no neuron")
    check(first_of_runs(np.sort(row)).all(), "a neuron has two rows")
    check(count.min(initial=0) >= 0, "a row's count is below 0")
    words = {*found.concept[row].tolist(), *found.feature[row].tolist()} - {PRIME}
    check(words <= found.names.keys(), "the words of a row have no text")
