"""Updates that are not merged into the shards yet: batches, and chains of pieces through them.

Each update is appended as one batch. The part of a batch that belongs to one neuron is a *piece*;
it points back to that neuron's previous piece. So adding an update costs one copy. A row is read
from its part of the shard, and by walking back along its neuron's pieces.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.hash_table import Numbers
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.memory.heads import Heads
from giaann_p2p.store.memory.shard import Part, Piece, Plain


@dataclass(frozen=True, eq=False)
class Batch:
    """A batch of r pieces with m connections in total; the pieces are grouped by shard."""

    first: int
    """The number of the batch's first piece; pieces are numbered across all batches."""
    neuron: Numbers
    """Shape [r]: the number of each piece's neuron."""
    count: Ints
    """Shape [r]: how often each piece's neuron occurred."""
    starts: Ints
    """Shape [r + 1]: where each piece's connections start, and the end of the last."""
    target: Numbers
    """Shape [m]: the number of each connection's target neuron."""
    place: npt.NDArray[Any]
    """Shape [m]: the place of each connection at its target."""
    units: npt.NDArray[Any]
    """Shape [m]: the strength of each connection, in four bytes each if that is enough for all.
    Strengths are below 0 in a withdrawal."""
    previous: Ints
    """Shape [r]: the number of the previous piece of each piece's neuron; a number
    below those of all pending pieces if there is none."""
    shard_starts: Ints
    """Shape [N + 1]: where each shard's pieces start, and the end of the last."""

    @property
    def end(self) -> int:
        """The number after that of the batch's last piece."""
        return self.first + len(self.neuron)

    @property
    def connections(self) -> int:
        """The number of connections of all pieces together."""
        return len(self.target)

    @cached_property
    def nbytes(self) -> int:
        """The memory that the batch takes, in bytes."""
        numbers = self.neuron, self.count, self.previous, self.starts, self.shard_starts
        return sum(array.nbytes for array in (*numbers, self.target, self.place, self.units))

    @cached_property
    def plain(self) -> Plain:
        """The batch's arrays as memoryviews, which are faster for reading many rows one by one."""
        arrays = (self.neuron, self.count, self.starts, self.target, self.place)
        return Plain(*[array.data for array in arrays])

    def taken_back(self) -> "Batch":
        """Return a batch that subtracts what this one adds."""
        return replace(self, count=-self.count, units=-self.units.astype(np.int64))

    def of_shard(self, number: int) -> slice:
        """Return the range of pieces that belong to a shard."""
        return slice(int(self.shard_starts[number]), int(self.shard_starts[number + 1]))

    def connections_of(self, pieces: slice) -> slice:
        """Return the range of connections that belong to consecutive pieces."""
        return slice(int(self.starts[pieces.start]), int(self.starts[pieces.stop]))

    def part(self, piece: int) -> Part:
        """Return the connections of one piece, given by its index in the batch."""
        start, end = self.starts[piece : piece + 2].tolist()
        return Part(self.target[start:end], self.place[start:end], self.units[start:end])


@dataclass(frozen=True, eq=False)
class Gathered:
    """Ranges of pieces from several batches, concatenated: r pieces, m connections."""

    neuron: Numbers
    """Shape [r]: the number of each piece's neuron."""
    count: Ints
    """Shape [r]: how often each piece's neuron occurred."""
    lengths: Ints
    """Shape [r]: the number of connections of each piece."""
    target: Numbers
    """Shape [m]: the number of each connection's target neuron."""
    place: npt.NDArray[Any]
    """Shape [m]: the place of each connection at its target."""
    units: Ints
    """Shape [m]: the strength of each connection."""

    def piece(self, row: Ints) -> Piece:
        """Return all connections as one piece to merge; `row` is the row of each gathered piece."""
        return Piece(np.repeat(row, self.lengths), self.target, self.place, self.units)


def gathered(chosen: Sequence[tuple[Batch, slice]]) -> Gathered:
    """Concatenate ranges of pieces from several batches, with few numpy calls per batch."""
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
    """The batches that are not merged into all shards yet, in order of arrival.

    Immutable, so that a reader sees one moment. Invariant: `firsts[i]` is the number of the first
    piece of `batches[i]`.
    """

    batches: tuple[Batch, ...] = ()
    firsts: tuple[int, ...] = ()

    def plus(self, batch: Batch) -> "Pending":
        """Return the pending batches with one more at the end."""
        return Pending((*self.batches, batch), (*self.firsts, batch.first))

    def since(self, floor: int) -> "Pending":
        """Return the batches whose first pieces are numbered `floor` or higher."""
        at = bisect_right(self.firsts, floor - 1)
        return Pending(self.batches[at:], self.firsts[at:])

    def chain(self, piece: int, floor: int) -> Iterator[tuple[Batch, int]]:
        """Walk back along a neuron's pieces, from `piece` to `floor`.

        Yields each piece's batch, and its index in that batch.
        """
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
    heads: Heads,
) -> Batch:
    """Return a batch that adds a delta.

    `shard`: the shard of each of the delta's neurons, or -1 to leave the neuron out. `number`: the
    number of each of these neurons. `place`: the place of each connection. `first`: the number of
    the batch's first piece. `heads`: the last piece of each neuron before this batch.
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
        heads.of(neuron),
        np.searchsorted(shard[chosen], np.arange(shards + 1)),
    )
