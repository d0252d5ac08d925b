"""Chunks' deltas in a file, so that each measurement reads them in a process of its own.

A workload goes on until its connections are as many as the largest size asks for, and some chunks
further, for a writer that works while somebody reads.
"""

import itertools
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec
import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser, chunks, max_chars
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import document_sentences
from giaann_p2p.store.codec.parcel import Limits, decode, encode
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.memory.columns import Columns
from giaann_p2p.store.memory.places import Places
from tests.benchmarks.zipf import Zipf

SPEC = ModelSpec()
LAYOUT = Layout()
ALL = np.arange(LAYOUT.shards, dtype=np.uint16)
SPARE = 48
"""Chunks beyond the largest size."""

_MANY = (1 << 31) - 1
_LIMITS = Limits(SPEC.branches, SPEC.segments, _MANY, _MANY)
_CHUNK = 30_000
"""About how many connections a chunk adds, a little less than it does."""
_HEAD = struct.Struct("<II")


class Chunk(NamedTuple):
    """A chunk, and how many sentences it has."""

    delta: Delta
    sentences: int


class Size(msgspec.Struct, frozen=True):
    """What the first chunks of a workload add up to."""

    chunks: int
    sentences: int
    increments: int
    connections: int
    neurons: int


class Workload(msgspec.Struct, frozen=True):
    """See the module. Sizes are by the number of connections that were asked for."""

    path: str
    sizes: dict[int, Size]

    def first(self, size: int) -> Iterator[Chunk]:
        """Iterate over the chunks that add up to a size."""
        return itertools.islice(_read(Path(self.path)), self.sizes[size].chunks)

    def behind(self, size: int) -> list[Chunk]:
        """Return the chunks that come then."""
        at = self.sizes[size].chunks
        return list(itertools.islice(_read(Path(self.path)), at, at + SPARE))


def made(path: Path, text: Path | None, seed: int, sizes: Sequence[int]) -> Workload:
    """Write the workload of a text, or of a seed; sizes beyond what a text has are left out."""
    counted, found = _Counted(), {}
    parts = _parsed(text) if text else Zipf().chunks(SPEC, seed)
    with path.open("wb") as file:
        for size in sorted(sizes):
            if not counted.up_to(size, _written(parts, file)):
                break
            found[size] = counted.size()
        for _ in itertools.islice(_written(parts, file), SPARE):
            pass
    return Workload(str(path), found)


def _parsed(path: Path) -> Iterator[Sequences]:
    parser = Parser(SPEC)
    with path.open("rb") as file:
        for chunk in chunks(document_sentences(file, str(path), max_chars(SPEC))):
            yield parser.parse([chunk])[0].sequences


class _Counted:
    """Counts connections as they come."""

    def __init__(self) -> None:
        self._columns = Columns(LAYOUT, Places(SPEC.branches, SPEC.segments))
        for number in ALL.tolist():
            self._columns.hold(number)
        self._chunks = self._sentences = self._increments = 0

    def up_to(self, size: int, chunks: Iterator[Chunk]) -> bool:
        """Take chunks until there are so many connections; tell whether there were enough."""
        while self._columns.connections < size:
            some = list(itertools.islice(chunks, self._surely_missing(size)))
            if not some:
                return False
            for chunk in some:
                self._add(chunk)
            self._columns.merge_all()
        return True

    def _add(self, chunk: Chunk) -> None:
        self._columns.add(chunk.delta, ALL)
        self._chunks += 1
        self._sentences += chunk.sentences
        self._increments += chunk.delta.connections

    def _surely_missing(self, size: int) -> int:
        return max(1, (size - self._columns.connections) // (2 * _CHUNK))

    def size(self) -> Size:
        """Return what came so far."""
        return Size(
            self._chunks,
            self._sentences,
            self._increments,
            self._columns.connections,
            len(self._columns.neurons),
        )


def _written(source: Iterator[Sequences], file: BinaryIO) -> Iterator[Chunk]:
    for sequences in source:
        delta = learn(sequences, SPEC)
        parcel = encode(delta)
        file.write(_HEAD.pack(len(sequences), len(parcel)))
        file.write(parcel)
        yield Chunk(delta, len(sequences))


def _read(path: Path) -> Iterator[Chunk]:
    with path.open("rb") as file:
        while head := file.read(_HEAD.size):
            sentences, length = _HEAD.unpack(head)
            yield Chunk(decode(file.read(length), _LIMITS), sentences)
