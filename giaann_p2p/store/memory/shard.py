"""A shard as it was at one moment: its rows as compact, immutable arrays.

Most connections take 6 bytes: the target's number (4), branch and segment as one *place* (1), and
a code of the strength (1). Rows are in order of arrival. A row's connections are in the order of
(target, place), so that one search finds where to merge new connections.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.hash_table import Numbers
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.memory.made import MadeRows
from giaann_p2p.store.memory.strengths import Strengths, narrowed

Keys = npt.NDArray[np.uint64]
Kind = TypeVar("Kind", bound=np.integer[Any])


class Part(NamedTuple):
    """Connections of one row, in the order of (target, place)."""

    target: Numbers
    place: npt.NDArray[Any]
    units: npt.NDArray[Any]


class Piece(NamedTuple):
    """m connections to add to the rows of a shard."""

    row: Ints
    """Shape [m]: the row of each connection."""
    target: Numbers
    """Shape [m]: the number of each connection's target neuron."""
    place: npt.NDArray[Any]
    """Shape [m]: the place of each connection at its target."""
    units: Ints
    """Shape [m]: the strength of each connection."""


class Plain(NamedTuple):
    """The arrays of a shard or batch as memoryviews.

    Reading a value or a few bytes from them takes a third of the time that numpy takes.
    """

    neuron: memoryview
    counts: memoryview
    starts: memoryview
    target: memoryview
    place: memoryview


@dataclass(frozen=True, eq=False)
class Shard:
    """A shard at one moment, with n rows and m connections; it is never mutated."""

    neuron: Numbers
    """Shape [n]: the number of each row's neuron."""
    count: npt.NDArray[Any]
    """Shape [n]: how often each row's neuron occurred; u32, or i64 if one needs it."""
    starts: npt.NDArray[Any]
    """Shape [n + 1]: where each row's connections start, and the end of the last; u32, or i64 if
    one needs it."""
    target: Numbers
    """Shape [m]: the number of each connection's target neuron."""
    place: npt.NDArray[Any]
    """Shape [m]: the place of each connection at its target; u8, or u16 if the model has more than
    256 places."""
    strengths: Strengths
    floor: int
    """The number of the first piece that is not merged into this shard."""

    @cached_property
    def made(self) -> MadeRows:
        """The shard's rows that a reader still uses."""
        return MadeRows()

    @property
    def rows(self) -> int:
        """The number of rows, including empty ones that a withdrawal left."""
        return len(self.neuron)

    @property
    def connections(self) -> int:
        """The number of merged connections."""
        return len(self.target)

    @cached_property
    def nbytes(self) -> int:
        """The memory that the shard takes, in bytes."""
        arrays = (self.neuron, self.count, self.starts, self.target, self.place)
        return sum(array.nbytes for array in arrays) + self.strengths.nbytes

    def emptied(self) -> "Shard":
        """Return a shard with the same rows, in which all rows are empty."""
        empty = empty_shard(self.place.dtype)
        starts = np.zeros_like(self.starts)
        return replace(empty, neuron=self.neuron, count=np.zeros_like(self.count), starts=starts)

    def part(self, row: int) -> Part:
        """Return the connections of one row, given by its index in the shard."""
        start, end = self.plain.starts[row], self.plain.starts[row + 1]
        units = self.strengths.units(start, end)
        return Part(self.target[start:end], self.place[start:end], units)

    @cached_property
    def plain(self) -> "Plain":
        """The shard's arrays as memoryviews, which are faster for reading many rows one by one."""
        arrays = (self.neuron, self.count, self.starts, self.target, self.place)
        return Plain(*[array.data for array in arrays])

    @property
    def occurring(self) -> Numbers:
        """The neurons whose rows are not empty; a withdrawal may leave empty rows."""
        there = self.count > 0
        return self.neuron if there.all() else self.neuron[there | (np.diff(self.starts) > 0)]

    def row_numbers(self) -> Ints:
        """Return the index of each connection's row, as an array of shape [m]."""
        return np.repeat(np.arange(self.rows), np.diff(self.starts))

    def merged(self, neuron: Numbers, count: Ints, pieces: Sequence[Piece], floor: int) -> "Shard":
        """Return a new shard with pieces merged into this one.

        `neuron` and `count` are those of all rows of the new shard: the old rows, then new ones.
        """
        key = _Key.for_sizes(len(neuron), self, pieces)
        new, units = _summed(
            np.concatenate([key.pack(*piece[:3]) for piece in pieces]),
            np.concatenate([piece.units for piece in pieces]),
        )
        is_less = units.min(initial=1) <= 0
        if is_less:
            new, units = self._less(key, new, units)
        if is_less or not self.connections:  # no old connections to interleave with
            row, target, place = key.unpack(new)
            starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(neuron)))])
            kinds = target.astype(self.target.dtype), place.astype(self.place.dtype)
            return _shard(neuron, count, starts, *kinds, Strengths.of(units), floor)
        old = self._keys(key)
        at = np.searchsorted(old, new)  # the position of each new connection, or where it belongs
        known = old.take(at, mode="clip") == new
        added = at[~known] + np.arange(np.count_nonzero(~known))  # their positions in the result
        is_old = np.ones(len(old) + len(added), np.bool_)
        is_old[added] = False
        kept = np.flatnonzero(is_old)  # the positions of the old connections in the result
        row, target, place = key.unpack(new[~known])
        lengths = np.zeros(len(neuron), np.int64)
        lengths[: self.rows] = np.diff(self.starts)
        lengths += np.bincount(row, minlength=len(neuron))
        return _shard(
            neuron,
            count,
            np.concatenate([[0], np.cumsum(lengths)]),
            _woven(self.target, kept, target, added),
            _woven(self.place, kept, place, added),
            self.strengths.woven(kept, at[known], units[known], added, units[~known]),
            floor,
        )

    def _keys(self, key: "_Key") -> Keys:
        return key.pack(self.row_numbers(), self.target, self.place)

    def _less(self, key: "_Key", new: Keys, units: Ints) -> tuple[Keys, Ints]:
        """Return all connections after adding those of a withdrawal, which have negative strengths.

        Connections whose strength becomes 0 are left out.
        """
        keys, total = _summed(
            np.concatenate([self._keys(key), new]),
            np.concatenate([self.strengths.units(0, self.connections), units]),
        )
        return keys[total != 0], total[total != 0]


def empty_shard(places: npt.DTypeLike, floor: int = 0) -> Shard:
    """Return a shard without rows; `places` is the type of its place numbers."""
    return replace(_nothing(np.dtype(places)), floor=floor)


@lru_cache
def _nothing(places: np.dtype[Any]) -> Shard:
    none = np.empty(0, np.uint32)
    never, strengths = np.empty(0, np.int64), Strengths.of(np.empty(0, np.int64))
    return _shard(none, never, np.zeros(1, np.int64), none, np.empty(0, places), strengths, 0)


def _shard(
    neuron: Numbers,
    count: Ints,
    starts: Ints,
    target: Numbers,
    place: npt.NDArray[Any],
    strengths: Strengths,
    floor: int,
) -> Shard:
    """Return a shard whose counts and starts are stored in four bytes each if they fit."""
    return Shard(neuron, narrowed(count), narrowed(starts), target, place, strengths, floor)


class _Key(NamedTuple):
    """Packs (row, target, place) of a connection into one integer with the same sort order."""

    target_bits: int
    place_bits: int

    @classmethod
    def for_sizes(cls, rows: int, shard: Shard, pieces: Sequence[Piece]) -> "_Key":
        targets = [shard.target, *(piece.target for piece in pieces)]
        most = max(int(target.max(initial=0)) for target in targets)
        key = cls(most.bit_length(), 8 * shard.place.itemsize)
        if rows.bit_length() + sum(key) > 64:
            raise OverflowError(f"{rows} rows are too many for one shard")
        return key

    def pack(self, row: Ints, target: Numbers, place: npt.NDArray[Any]) -> Keys:
        packed = row.astype(np.uint64) << np.uint64(self.target_bits)
        packed |= target
        packed <<= np.uint64(self.place_bits)
        packed |= place
        return packed

    def unpack(self, packed: Keys) -> tuple[Ints, Keys, Keys]:
        place = packed & np.uint64((1 << self.place_bits) - 1)
        packed = packed >> np.uint64(self.place_bits)
        target = packed & np.uint64((1 << self.target_bits) - 1)
        return (packed >> np.uint64(self.target_bits)).astype(np.int64), target, place


def _summed(keys: Keys, units: Ints) -> tuple[Keys, Ints]:
    """Sort connections by key, and add up the strengths of equal keys."""
    if not len(keys):
        return keys, units
    keys, order = _sorted(keys)
    first = np.flatnonzero(first_of_runs(keys))
    return keys[first], np.add.reduceat(units[order], first)


def _sorted(keys: Keys) -> tuple[Keys, Ints]:
    """Sort keys; return also their order. Keys packed with their indices are sorted faster."""
    bits = np.uint64(len(keys).bit_length())
    if int(keys.max()) >> int(np.uint64(64) - bits):  # no bits are left for the index
        order = np.argsort(keys)
        return keys[order], order
    packed = keys << bits
    packed |= np.arange(len(keys), dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << bits) - np.uint64(1))).view(np.int64)
    packed >>= bits
    return packed, order


def _woven(
    old: npt.NDArray[Kind], kept: Ints, new: npt.NDArray[Any], added: Ints
) -> npt.NDArray[Kind]:
    """Interleave two arrays, given the positions of their values in the result."""
    whole = np.empty(len(old) + len(new), old.dtype)
    whole[kept] = old
    whole[added] = new
    return whole
