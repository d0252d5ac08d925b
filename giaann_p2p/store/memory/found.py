"""Collects the rows of an answer into a sheaf.

A row that is fully merged is in the order of (target, place) already, and is just copied. The parts
of all other rows must be added up; these rows are sorted together in one step.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import UsageError
from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.hash_table import Numbers
from giaann_p2p.model.neurons import Neurons
from giaann_p2p.model.ranks import ranked
from giaann_p2p.model.row_slice import EVERYTHING, RowSlice
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.codec.sheaf import Sheaf
from giaann_p2p.store.memory.batch import Batch, Pending
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.shard import Plain, Shard
from giaann_p2p.store.memory.strengths import decoded

_HALF, _KEY_BITS = 32, 64
_NARROW = 4


class Found:
    """The rows of an answer that were found so far, in any order."""

    def __init__(self, places: Places, within: RowSlice = EVERYTHING) -> None:
        """`within`: the slice of the rows that is wanted."""
        self._places, self._within = places, within
        self._whole, self._parted = _Rows(), _Rows()

    def take(self, neuron: int, shard: Shard, row: int, pending: Pending, piece: int) -> None:
        """Add a neuron's row: its merged row in the shard and its unmerged pieces.

        `row`: the row's index in the shard, below 0 if there is none.
        `piece`: the number of the neuron's last piece.
        """
        if piece < shard.floor:
            if row >= 0 and (shard.plain.counts[row] or _connections(shard, row)):
                _take_row(self._whole, shard, row)
                self._whole.end(neuron, shard.plain.counts[row])
            return
        pieces = list(pending.chain(piece, shard.floor))
        count = sum([batch.plain.counts[at] for batch, at in pieces])
        count += shard.plain.counts[row] if row >= 0 else 0
        rows = self._parted
        if row >= 0:
            _take_row(rows, shard, row)
        for batch, at in pieces:
            _take_piece(rows, batch, at)
        rows.end(neuron, count)

    def sheaf(self, neurons: Neurons) -> Sheaf:
        """Return all rows found as a sheaf without names."""
        whole, parted = self._whole, self._parted
        runs = [
            self._cut(whole.run(self._places), neurons),
            _summed(self._cut(parted.run(self._places), neurons)),
        ]
        row = np.array(whole.neurons + parted.neurons, np.uint32)
        counts = np.array(whole.counts + parted.counts, np.int64)
        lengths, target, place, units = map(np.concatenate, zip(*runs, strict=True))
        there = (counts > 0) | (lengths > 0)
        if not there.all():  # all of a row was withdrawn
            row, counts, lengths = row[there], counts[there], lengths[there]
        used, index = ranked(np.concatenate([row, target]), len(neurons))
        starts = np.zeros(len(row) + 1, np.int64)
        lengths.cumsum(out=starts[1:])
        indices = neurons.word_indices(used)
        at, target = index[: len(row)], index[len(row) :]
        return Sheaf(*indices, {}, at, counts, starts, target, place, units)

    def _cut(self, run: "_Run", neurons: Neurons) -> "_Run":
        """Return a run without the connections whose targets are outside the wanted slice."""
        if not self._within.halvings:
            return run
        kept = self._within.has(*neurons.ids(run.target)).nonzero()[0]
        ends = np.searchsorted(kept, np.cumsum([0, *run.lengths]))
        return _Run(np.diff(ends), run.target[kept], run.place[kept], run.units[kept])


class _Run(NamedTuple):
    """The connections of r rows, concatenated: m connections."""

    lengths: Ints
    """Shape [r]: the number of connections of each row."""
    target: Numbers
    """Shape [m]: the number of each connection's target neuron."""
    place: npt.NDArray[Any]
    """Shape [m]: the place of each connection at its target."""
    units: Ints
    """Shape [m]: the strength of each connection."""


class _Rows:
    """Collects rows, and their connections as bytes."""

    def __init__(self) -> None:
        self.neurons: list[int] = []
        self.counts: list[int] = []
        self._ends: list[int] = []
        self._size = 0
        self._target: list[bytes] = []
        self._place: list[bytes] = []
        self._codes: list[bytes] = []
        self._rest: list[bytes] = []  # the low 32 bits of strengths that have no code
        self._rests = 0
        self._wide: list[tuple[int, Ints]] = []  # an index in the rest, full strengths from it on

    def take(self, plain: Plain, start: int, end: int, codes: bytes, rest: memoryview) -> None:
        """Add connections to the current row; `codes` and `rest` are as in `Strengths`.

        The bytes are copied, because the garbage collector would traverse many views again and
        again.
        """
        self._size += end - start
        self._target.append(plain.target[start:end].tobytes())
        self._place.append(plain.place[start:end].tobytes())
        self._codes.append(codes)
        if len(rest):
            if rest.itemsize > _NARROW:
                whole = np.frombuffer(rest, np.int64)
                self._wide.append((self._rests, whole))
                rest = whole.astype(np.uint32).data
            self._rest.append(rest.tobytes())
            self._rests += len(rest)

    def end(self, neuron: int, count: int) -> None:
        """Complete the current row: the connections added since the last call are this neuron's."""
        self.neurons.append(neuron)
        self.counts.append(count)
        self._ends.append(self._size)

    def run(self, places: Places) -> _Run:
        """Return the connections of all rows as arrays."""
        rest = np.frombuffer(b"".join(self._rest), np.uint32).astype(np.int64)
        for start, whole in self._wide:
            rest[start : start + len(whole)] = whole
        return _Run(
            np.diff(np.array([0, *self._ends])),
            np.frombuffer(b"".join(self._target), np.uint32),
            np.frombuffer(b"".join(self._place), places.dtype),
            decoded(np.frombuffer(b"".join(self._codes), np.uint8), rest),
        )


def _connections(shard: Shard, row: int) -> int:
    starts = shard.plain.starts
    return starts[row + 1] - starts[row]


def _take_row(rows: _Rows, shard: Shard, row: int) -> None:
    plain = shard.plain
    start, end = plain.starts[row], plain.starts[row + 1]
    codes, first, last = shard.strengths.coded(start, end)
    rows.take(plain, start, end, codes, shard.strengths.plain.rest[first:last])


def _take_piece(rows: _Rows, batch: Batch, at: int) -> None:
    plain = batch.plain
    start, end = plain.starts[at], plain.starts[at + 1]
    rows.take(plain, start, end, bytes(end - start), batch.units[start:end].data)


def _summed(run: _Run) -> _Run:
    """Sort each row's connections by (target, place), and add up those that are equal in both."""
    if not len(run.target):
        return run
    rows, shift = len(run.lengths), 8 * run.place.itemsize
    if rows.bit_length() + _HALF + shift > _KEY_BITS:
        raise UsageError(f"{rows} rows are too many to be read at once; ask for fewer")
    row = np.arange(rows).repeat(run.lengths)
    key = row.astype(np.uint64)
    key <<= np.uint64(_HALF)
    key |= run.target
    key <<= np.uint64(shift)
    key |= run.place
    order = key.argsort()
    (first,) = first_of_runs(key[order]).nonzero()
    units = np.add.reduceat(run.units[order], first)
    order = order[first]
    if not units.all():  # some connections were withdrawn
        order, units = order[units != 0], units[units != 0]
    lengths = np.bincount(row[order], minlength=rows)
    return _Run(lengths, run.target[order], run.place[order], units)
