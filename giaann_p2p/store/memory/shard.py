"""What a shard held at one moment: its rows as compact arrays that never change.

A connection takes 9 bytes: its target's number (4), its branch and segment as one *place* (1), and
the low half of its strength (4). The few strengths of 2^32 and more keep their high half aside.
Rows stand in the order in which they came, a row's connections in the order of (target, place), so
that new ones are merged in by one search.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.memory.neurons import Numbers

Keys = npt.NDArray[np.uint64]
_HALF = 32
Kind = TypeVar("Kind", bound=np.integer[Any])


@dataclass(frozen=True, eq=False)
class Strengths:
    """Strengths in four bytes each, but the few that need more."""

    low: Numbers
    """[m]"""
    wide: Ints
    """[w] where those of 2^32 and more are, ascending."""
    high: Numbers
    """[w] their high halves."""

    @classmethod
    def of(cls, units: Ints) -> "Strengths":
        """Pack; OverflowError for a sum that has outgrown 63 bits."""
        if len(units) and int(units.min()) < 0:
            raise OverflowError("a connection's strength has outgrown 63 bits")
        wide = np.flatnonzero(units >> _HALF)
        return cls(units.astype(np.uint32), wide, (units[wide] >> _HALF).astype(np.uint32))

    def units(self, start: int, end: int) -> Ints:
        """Return some of them."""
        units = self.low[start:end].astype(np.int64)
        if len(self.wide):
            first, last = np.searchsorted(self.wide, (start, end))
            units[self.wide[first:last] - start] += self.high[first:last].astype(np.int64) << _HALF
        return units

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.low.nbytes + self.wide.nbytes + self.high.nbytes


class Part(NamedTuple):
    """Some connections of one row, in the order of (target, place)."""

    target: Numbers
    place: npt.NDArray[Any]
    units: npt.NDArray[Any]


class Piece(NamedTuple):
    """Connections to be added to some rows."""

    row: Ints
    """[m]"""
    target: Numbers
    """[m]"""
    place: npt.NDArray[Any]
    """[m]"""
    units: Ints
    """[m]"""


class Plain(NamedTuple):
    """Arrays without numpy: a value of them, or the bytes of some, for a third of the time."""

    neuron: memoryview
    counts: memoryview
    starts: memoryview
    target: memoryview
    place: memoryview
    low: memoryview


@dataclass(frozen=True, eq=False)
class Shard:
    """n rows and m connections."""

    neuron: Numbers
    """[n]"""
    count: Ints
    """[n] how often the neuron occurred."""
    starts: Ints
    """[n + 1] where each row's connections start, and the end of the last."""
    target: Numbers
    """[m]"""
    place: npt.NDArray[Any]
    """[m] u8, or u16 where a model has more branches and segments than 256."""
    strengths: Strengths
    floor: int
    """The number of the first piece that is not in it."""

    @property
    def rows(self) -> int:
        """n."""
        return len(self.neuron)

    @property
    def connections(self) -> int:
        """m."""
        return len(self.target)

    @cached_property
    def nbytes(self) -> int:
        """How much memory it takes."""
        arrays = (self.neuron, self.count, self.starts, self.target, self.place)
        return sum(array.nbytes for array in arrays) + self.strengths.nbytes

    def emptied(self) -> "Shard":
        """Return a shard with the same rows and nothing in them."""
        empty = empty_shard(self.place.dtype)
        starts = np.zeros_like(self.starts)
        return replace(empty, neuron=self.neuron, count=np.zeros_like(self.count), starts=starts)

    def part(self, row: int) -> Part:
        """Return a row's connections."""
        start, end = self.starts[row : row + 2].tolist()
        units = self.strengths.units(start, end)
        return Part(self.target[start:end], self.place[start:end], units)

    @cached_property
    def plain(self) -> "Plain":
        """The same, for who takes many rows one by one."""
        low = self.strengths.low
        arrays = (self.neuron, self.count, self.starts, self.target, self.place, low)
        return Plain(*[array.data for array in arrays])

    @property
    def occurring(self) -> Numbers:
        """The neurons that have occurred: of one that was withdrawn an empty row is left."""
        there = self.count > 0
        return self.neuron if there.all() else self.neuron[there | (np.diff(self.starts) > 0)]

    def row_numbers(self) -> Ints:
        """Return [m] each connection's row."""
        return np.repeat(np.arange(self.rows), np.diff(self.starts))

    def merged(self, neuron: Numbers, count: Ints, pieces: Sequence[Piece], floor: int) -> "Shard":
        """Return the shard with more: `neuron` and `count` are those of all rows now."""
        key = _Key.for_sizes(len(neuron), self, pieces)
        new, units = _summed(
            np.concatenate([key.pack(*piece[:3]) for piece in pieces]),
            np.concatenate([piece.units for piece in pieces]),
        )
        is_less = units.min(initial=1) <= 0
        if is_less:
            new, units = self._less(key, new, units)
        if is_less or not self.connections:  # there is nothing to weave it into
            row, target, place = key.unpack(new)
            starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(neuron)))])
            kinds = target.astype(self.target.dtype), place.astype(self.place.dtype)
            return Shard(neuron, count, starts, *kinds, Strengths.of(units), floor)
        old = self._keys(key)
        at = np.searchsorted(old, new)  # where each new one is, or is to be
        known = np.zeros(len(new), np.bool_)
        inside = at < len(old)
        known[inside] = old[at[inside]] == new[inside]
        total = self.strengths.units(0, self.connections)
        total[at[known]] += units[known]

        added = at[~known] + np.arange(np.count_nonzero(~known))  # their places in what comes out
        kept = np.ones(len(old) + len(added), np.bool_)
        kept[added] = False
        row, target, place = key.unpack(new[~known])
        lengths = np.zeros(len(neuron), np.int64)
        lengths[: self.rows] = np.diff(self.starts)
        lengths += np.bincount(row, minlength=len(neuron))
        return Shard(
            neuron,
            count,
            np.concatenate([[0], np.cumsum(lengths)]),
            _woven(kept, self.target, added, target),
            _woven(kept, self.place, added, place),
            Strengths.of(_woven(kept, total, added, units[~known])),
            floor,
        )

    def _keys(self, key: "_Key") -> Keys:
        return key.pack(self.row_numbers(), self.target, self.place)

    def _less(self, key: "_Key", new: Keys, units: Ints) -> tuple[Keys, Ints]:
        """Return what there is in all, where some is taken back."""
        keys, total = _summed(
            np.concatenate([self._keys(key), new]),
            np.concatenate([self.strengths.units(0, self.connections), units]),
        )
        return keys[total != 0], total[total != 0]


def empty_shard(places: npt.DTypeLike, floor: int = 0) -> Shard:
    """Return a shard without rows."""
    none = np.empty(0, np.uint32)
    return Shard(
        none,
        np.empty(0, np.int64),
        np.zeros(1, np.int64),
        none,
        np.empty(0, places),
        Strengths.of(np.empty(0, np.int64)),
        floor,
    )


class _Key(NamedTuple):
    """Packs (row, target, place) into a whole number that sorts like them."""

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
    """Sort by key and add up what shares one."""
    if not len(keys):
        return keys, units
    order = np.argsort(keys)
    keys = keys[order]
    first = np.flatnonzero(first_of_runs(keys))
    return keys[first], np.add.reduceat(units[order], first)


def _woven(
    kept: npt.NDArray[np.bool_], old: npt.NDArray[Kind], added: Ints, new: npt.NDArray[Any]
) -> npt.NDArray[Kind]:
    """Return the old where `kept`, the new at the places that are `added`."""
    whole = np.empty(len(kept), old.dtype)
    whole[kept] = old
    whole[added] = new
    return whole
