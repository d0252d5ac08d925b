"""The same work on plain dictionaries and on lmdb, in the most straightforward ways.

Each gives a neuron's connections as an array of targets, places and strengths, in order, the
targets by number, of which the store, besides, makes their ids. That all hold the same is checked.
Lmdb is told to sync as often as the store does; dictionaries are pickled at the end.
"""

import itertools
import pickle
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Delta, first_of_runs
from giaann_p2p.model.rows import Answer, Neuron
from giaann_p2p.store.store import Store
from tests.benchmarks.process import Memory, Taken, timed
from tests.benchmarks.reading import ANY, picked
from tests.benchmarks.workload import ALL, LAYOUT, SPEC, Workload
from tests.benchmarks.writing import GROUP, Figures, groups, warm

SIZE = 500_000
"""Connections; all can bear so many."""

_ROW = np.dtype([("target", "<u4"), ("place", "u1"), ("strength", "<u4")])
_KEY = np.dtype([("source", ">u4"), ("target", ">u4"), ("place", "u1")])
_STRENGTH = np.dtype("<u4")
_SOURCE = struct.Struct(">I")
_MAP = 1 << 34
_SHIFT = 8

Entries = npt.NDArray[Any]
"""Connections of one row, as `_ROW`s."""


class Rival(ABC):
    """Connections by neuron, which it numbers as they come."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.number: dict[tuple[int, int], int] = {}

    @abstractmethod
    def apply(self, deltas: Sequence[Delta]) -> None:
        """Add deltas, all at once."""

    @abstractmethod
    def row(self, number: int) -> Entries:
        """Return a row."""

    @abstractmethod
    def close(self) -> None:
        """End, with all on the disk."""

    def read(self, neuron: Neuron) -> Entries:
        """Return a neuron's row."""
        return self.row(self.number[neuron])

    def numbered(self, delta: Delta) -> npt.NDArray[np.uint32]:
        """Return a delta's neurons' numbers."""
        named = zip(delta.concept.tolist(), delta.feature.tolist(), strict=True)
        known = self.number
        return np.array([known.setdefault(one, len(known)) for one in named], np.uint32)


class Dictionaries(Rival):
    """A dictionary of dictionaries of whole numbers."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._rows: dict[int, dict[int, int]] = {}
        self._file = directory / "pickle"
        if self._file.exists():
            self.number, self._rows = pickle.loads(self._file.read_bytes())  # noqa: S301 (our own)

    def apply(self, deltas: Sequence[Delta]) -> None:
        for delta in deltas:
            number = self.numbered(delta)
            key = number[delta.target].astype(np.int64) << _SHIFT | _places(delta)
            ends = delta.row_starts.tolist()
            keys, strengths = key.tolist(), delta.strength.tolist()
            for source, (start, end) in zip(number.tolist(), itertools.pairwise(ends), strict=True):
                row = self._rows.setdefault(source, {})
                for at in range(start, end):
                    row[keys[at]] = row.get(keys[at], 0) + strengths[at]

    def row(self, number: int) -> Entries:
        pairs = np.array(sorted(self._rows[number].items()), np.int64).reshape(-1, 2)
        return _entries(pairs[:, 0] >> _SHIFT, pairs[:, 0] & (1 << _SHIFT) - 1, pairs[:, 1])

    def close(self) -> None:
        self._file.write_bytes(pickle.dumps((self.number, self._rows), pickle.HIGHEST_PROTOCOL))


class _Lmdb(Rival):
    """Numbers of neurons stand in a table of their own, and in memory."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._home = lmdb.open(str(directory), map_size=_MAP, max_dbs=2)
        self._names, self._rows = self._home.open_db(b"names"), self._home.open_db(b"rows")
        with self._home.begin(self._names) as reader:
            for key, value in reader.cursor():
                concept, feature = struct.unpack("<QQ", value)
                self.number[concept, feature] = _SOURCE.unpack(key)[0]

    def apply(self, deltas: Sequence[Delta]) -> None:
        known = len(self.number)
        with self._home.begin(write=True) as writer:
            for delta in deltas:
                self._add(writer, delta, self.numbered(delta))
            new = list(self.number.items())[known:]
            named = [(_SOURCE.pack(number), struct.pack("<QQ", *name)) for name, number in new]
            writer.cursor(self._names).putmulti(named)

    @abstractmethod
    def _add(
        self, writer: lmdb.Transaction, delta: Delta, number: npt.NDArray[np.uint32]
    ) -> None: ...

    def close(self) -> None:
        self._home.close()


class LmdbConnections(_Lmdb):
    """A connection a key: source, target, place."""

    def _add(self, writer: lmdb.Transaction, delta: Delta, number: npt.NDArray[np.uint32]) -> None:
        key = np.empty(delta.connections, _KEY)
        key["source"], key["target"] = number[delta.source], number[delta.target]
        key["place"] = _places(delta)
        keys = key.view(f"V{_KEY.itemsize}").tolist()
        order = sorted(range(len(keys)), key=keys.__getitem__)
        keys = [keys[at] for at in order]
        cursor = writer.cursor(self._rows)
        known = {k: int.from_bytes(v, "little") for k, v in cursor.getmulti(keys)}
        sums = [
            known.get(k, 0) + s for k, s in zip(keys, delta.strength[order].tolist(), strict=True)
        ]
        cursor.putmulti([(k, s.to_bytes(4, "little")) for k, s in zip(keys, sums, strict=True)])

    def row(self, number: int) -> Entries:
        prefix = _SOURCE.pack(number)
        keys, values = [], []
        with self._home.begin(self._rows) as reader:
            cursor = reader.cursor()
            cursor.set_range(prefix)
            for key, value in cursor:
                if key[: len(prefix)] != prefix:
                    break
                keys.append(key)
                values.append(value)
        key = np.frombuffer(b"".join(keys), _KEY)
        return _entries(key["target"], key["place"], np.frombuffer(b"".join(values), _STRENGTH))


class LmdbRows(_Lmdb):
    """A row a value."""

    def _add(self, writer: lmdb.Transaction, delta: Delta, number: npt.NDArray[np.uint32]) -> None:
        entries = _entries(number[delta.target], _places(delta), delta.strength)
        ends = delta.row_starts.tolist()
        for source, (start, end) in zip(number.tolist(), itertools.pairwise(ends), strict=True):
            if start < end:
                key = _SOURCE.pack(source)
                held = np.frombuffer(writer.get(key, b"", self._rows), _ROW)
                row = _summed(np.concatenate([held, entries[start:end]]))
                writer.put(key, row.tobytes(), db=self._rows)

    def row(self, number: int) -> Entries:
        with self._home.begin(self._rows) as reader:
            return np.frombuffer(reader.get(_SOURCE.pack(number), b""), _ROW)


RIVALS = {
    "dictionaries": Dictionaries,
    "lmdb, a key a connection": LmdbConnections,
    "lmdb, a value a row": LmdbRows,
}
STORE = "the store"
CHECK = "strengths read"


def rival(name: str, work: Workload, size: int, directory: Path) -> Figures:
    """Measure one of them: bytes a connection, increments or connections a second, microseconds."""
    directory.mkdir()
    told, kind = work.sizes[size], RIVALS[name]
    warm(work, size)
    before, taken = Memory(), Taken()
    held, chunks = kind(directory), work.first(size)
    while group := [chunk.delta for chunk in itertools.islice(chunks, GROUP)]:
        with timed(taken):
            held.apply(group)
    memory = before.now() / told.connections
    held.close()
    with timed() as opened:
        again = kind(directory)
    asked = [question.neurons[0] for question in picked(work, size)[ANY]]
    return _read(again.read, asked) | {
        "RAM": memory,
        "disk": _disk(directory) / told.connections,
        "apply, processor time": told.increments / taken.cpu,
        "apply": told.increments / taken.wall,
        "recovery, processor time": told.connections / opened.cpu,
    }


def ours(work: Workload, size: int, directory: Path) -> Figures:
    """Measure the store, in the same way."""
    warm(work, size)
    told, before, taken = work.sizes[size], Memory(), Taken()
    with Store.at(directory, SPEC, LAYOUT) as store:
        store.hold(ALL.tolist())
        for group in groups(work, size):
            with timed(taken):
                store.apply([update for update, _ in group])
        store.compact()
        memory = before.now() / told.connections
    with timed() as opened:
        store = Store.at(directory)
    figures = _read(store.read, picked(work, size)[ANY]) | {
        "RAM": memory,
        "disk": _disk(directory) / told.connections,
        "apply, processor time": told.increments / taken.cpu,
        "apply": told.increments / taken.wall,
        "recovery, processor time": told.connections / opened.cpu,
    }
    store.close()
    return figures


def _read(read: Callable[[Any], Any], asked: Sequence[Any]) -> Figures:
    """Read some rows, twice; tell what they add up to, too, which is the same for all."""
    total, taken = 0, []
    for question in asked:
        found = read(question)
        total += int(_strength(found).sum(dtype=np.int64))
        begin = time.perf_counter()
        read(question)
        taken.append(time.perf_counter() - begin)
    p50, p99 = np.percentile(np.array(taken) * 1e6, [50, 99]).tolist()
    return {"row read: p50": p50, "row read: p99": p99, CHECK: float(total)}


def _strength(found: Entries | Answer) -> npt.NDArray[Any]:
    if isinstance(found, np.ndarray):
        return found["strength"]
    return found[0].strength if found[0] else np.empty(0, np.int64)


def _disk(directory: Path) -> int:
    """Return the bytes that its files take, but for holes."""
    return sum(file.stat().st_blocks * 512 for file in directory.iterdir())


def _places(delta: Delta) -> npt.NDArray[np.uint8]:
    return delta.branch * np.uint8(SPEC.segments) + delta.segment


def _entries(target: Entries, place: Entries, strength: Entries) -> Entries:
    row = np.empty(len(target), _ROW)
    row["target"], row["place"], row["strength"] = target, place, strength
    return row


def _summed(row: Entries) -> Entries:
    key = row["target"].astype(np.int64) << _SHIFT | row["place"]
    order = key.argsort(kind="stable")
    first = np.flatnonzero(first_of_runs(key[order]))
    found = row[order[first]]
    found["strength"] = np.add.reduceat(row["strength"][order], first)
    return found
