"""What was added lately and is not merged into the shards yet: batches, and chains through them.

Each update is appended as it is, as one batch; the piece of it that belongs to one neuron points
back to that neuron's previous piece. So adding costs a copy, and a row is its part of the shard and
a walk back along its pieces.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.memory.neurons import Numbers
from giaann_p2p.store.memory.shard import Part, Piece, Plain

NO_PIECE = -1
_NARROW = 4


@dataclass(frozen=True, eq=False)
class Batch:
    """r pieces and m connections, grouped by shard."""

    first: int
    """The number of the first piece; they count on through all batches."""
    neuron: Numbers
    """[r]"""
    count: Ints
    """[r] how often the neuron occurred."""
    starts: Ints
    """[r + 1] where each piece's connections start, and the end of the last."""
    target: Numbers
    """[m]"""
    place: npt.NDArray[Any]
    """[m]"""
    units: npt.NDArray[Any]
    """[m] strengths, in four bytes each where that is enough; below 0 to take some back."""
    previous: Ints
    """[r] each neuron's piece before this one."""
    shard_starts: Ints
    """[N + 1] where each shard's pieces start."""

    @property
    def end(self) -> int:
        """The number behind the last piece."""
        return self.first + len(self.neuron)

    @property
    def connections(self) -> int:
        """m."""
        return len(self.target)

    @cached_property
    def nbytes(self) -> int:
        """How much memory it takes."""
        numbers = self.neuron, self.count, self.previous, self.starts, self.shard_starts
        return sum(array.nbytes for array in (*numbers, self.target, self.place, self.units))

    @property
    def is_wide(self) -> bool:
        """Whether its strengths take eight bytes each."""
        return self.units.itemsize > _NARROW

    @cached_property
    def plain(self) -> Plain:
        """The same, for who takes many rows one by one."""
        low = self.units.astype(np.uint32) if self.is_wide else self.units
        arrays = (self.neuron, self.count, self.starts, self.target, self.place, low)
        return Plain(*[array.data for array in arrays])

    def taken_back(self) -> "Batch":
        """Return a batch that takes back what this one adds."""
        return replace(self, count=-self.count, units=-self.units.astype(np.int64))

    def of_shard(self, number: int) -> slice:
        """Return which pieces are a shard's."""
        return slice(int(self.shard_starts[number]), int(self.shard_starts[number + 1]))

    def connections_of(self, pieces: slice) -> slice:
        """Return which connections are some consecutive pieces'."""
        return slice(int(self.starts[pieces.start]), int(self.starts[pieces.stop]))

    def part(self, piece: int) -> Part:
        """Return one piece's connections."""
        start, end = self.starts[piece : piece + 2].tolist()
        return Part(self.target[start:end], self.place[start:end], self.units[start:end])


@dataclass(frozen=True, eq=False)
class Gathered:
    """Some consecutive pieces of each of some batches, one behind the other."""

    neuron: Numbers
    """[r]"""
    count: Ints
    """[r]"""
    lengths: Ints
    """[r] how many connections each piece has."""
    target: Numbers
    """[m]"""
    place: npt.NDArray[Any]
    """[m]"""
    units: Ints
    """[m]"""

    def piece(self, row: Ints) -> Piece:
        """Return the connections, given each piece's row."""
        return Piece(np.repeat(row, self.lengths), self.target, self.place, self.units)


def gathered(chosen: Sequence[tuple[Batch, slice]]) -> Gathered:
    """Put pieces together, with as few steps for each batch as may be."""
    ends = np.concatenate([batch.starts[part.start + 1 : part.stop + 1] for batch, part in chosen])
    held = [(batch, batch.connections_of(part)) for batch, part in chosen]
    return Gathered(
        np.concatenate([batch.neuron[part] for batch, part in chosen]),
        np.concatenate([batch.count[part] for batch, part in chosen]),
        ends - np.concatenate([batch.starts[part] for batch, part in chosen]),
        np.concatenate([batch.target[part] for batch, part in held]),
        np.concatenate([batch.place[part] for batch, part in held]),
        np.concatenate([batch.units[part] for batch, part in held], dtype=np.int64),
    )


class Pending(NamedTuple):
    """Batches in the order in which they came; a value, so that readers see one moment."""

    batches: tuple[Batch, ...] = ()
    firsts: tuple[int, ...] = ()

    def plus(self, batch: Batch) -> "Pending":
        """Return them with one more."""
        return Pending((*self.batches, batch), (*self.firsts, batch.first))

    def since(self, floor: int) -> "Pending":
        """Return those from the one on that starts with this piece."""
        at = bisect_right(self.firsts, floor - 1)
        return Pending(self.batches[at:], self.firsts[at:])

    def chain(self, piece: int, floor: int) -> Iterator[tuple[Batch, int]]:
        """Walk back from a piece to the floor: batches, and each piece's place in its batch."""
        while piece >= floor:
            batch = self.batches[bisect_right(self.firsts, piece) - 1]
            at = piece - batch.first
            yield batch, at
            piece = int(batch.previous[at])


def batch_of(
    delta: Delta,
    shard: Ints,
    shards: int,
    number: Numbers,
    place: npt.NDArray[Any],
    first: int,
    head: Ints,
) -> Batch:
    """Make a batch of a delta: `shard` is each neuron's, or -1 if it is not wanted here.

    `number` tells each neuron's number, `head` each numbered neuron's last piece so far.
    """
    lengths = delta.lengths
    chosen = np.flatnonzero((shard >= 0) & ((delta.count > 0) | (lengths > 0)))
    chosen = chosen[np.argsort(shard[chosen], kind="stable")]  # grouped by shard
    starts = np.concatenate([[0], np.cumsum(lengths[chosen])])
    connection = np.arange(starts[-1]) + np.repeat(
        delta.row_starts[chosen] - starts[:-1], lengths[chosen]
    )
    units = delta.strength[connection]
    neuron = number[chosen]
    return Batch(
        first,
        neuron,
        delta.count[chosen],
        starts,
        number[delta.target[connection]],
        place[connection],
        units if int(units.max(initial=0)) >> 32 else units.astype(np.uint32),
        head[neuron],
        np.searchsorted(shard[chosen], np.arange(shards + 1)),
    )
