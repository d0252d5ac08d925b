"""What has been learned, as arrays: the sum of some sequences' increments.

A delta is what one chunk adds; what a brain knows is the sum of its chunks' deltas, and so is a
delta, too. Addition is associative and commutative to the last byte, and `EMPTY` is its zero:
strengths and counts are sums of whole numbers, and of two texts for one number, which only a hash
collision could bring, the smaller wins. That is the whole reason why a swarm can equal one machine.

Neurons stand in the order of (concept, feature), connections in the order of (source, target,
branch, segment): a column, a shard or a row is a slice, and equal knowledge is equal bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from giaann_p2p.model.sequence import Ids, Ints, Names, joined_names

Bytes = npt.NDArray[np.uint8]
Slots = npt.NDArray[np.int32]

ARRAYS = (
    "concept",
    "feature",
    "count",
    "row_starts",
    "target",
    "branch",
    "segment",
    "strength",
)
"""The names of a delta's arrays, in order."""

_KEY_BITS = 63
Whole = TypeVar("Whole", Ints, torch.Tensor)
"""Whole numbers on any device."""


@dataclass(frozen=True, eq=False)
class Delta:
    """V neurons and M connections."""

    concept: Ids
    """[V]"""
    feature: Ids
    """[V]"""
    count: Ints
    """[V] how often the neuron occurred."""
    row_starts: Ints
    """[V + 1] where each neuron's outgoing connections start, and the end of the last."""
    target: Slots
    """[M] index of the neuron that is reached."""
    branch: Bytes
    """[M]"""
    segment: Bytes
    """[M]"""
    strength: Ints
    """[M] in units of 2^-16, always positive."""
    names: Names = field(default_factory=dict)
    """The text behind every concept and feature."""

    @property
    def neurons(self) -> int:
        """V."""
        return len(self.concept)

    @property
    def connections(self) -> int:
        """M."""
        return len(self.target)

    @property
    def lengths(self) -> Ints:
        """[N] how many connections each neuron's row has."""
        return self.row_starts[1:] - self.row_starts[:-1]

    @cached_property
    def source(self) -> Slots:
        """[M] index of the neuron that fires."""
        return np.repeat(np.arange(self.neurons, dtype=np.int32), self.lengths)

    def find(self, concept: int, feature: int) -> int | None:
        """Return the index of a neuron, or None."""
        first = np.searchsorted(self.concept, np.uint64(concept), "left")
        last = np.searchsorted(self.concept, np.uint64(concept), "right")
        at = int(first + np.searchsorted(self.feature[first:last], np.uint64(feature)))
        return at if at < last and self.feature[at] == np.uint64(feature) else None

    def cut(self, part: Ints) -> dict[int, "Delta"]:
        """Cut by rows: neuron i goes to part[i]. The parts' total is the whole again."""
        parts = {int(number): part == number for number in np.unique(part)}
        return {number: self._of(chosen, chosen[self.source]) for number, chosen in parts.items()}

    def only(self, chosen: npt.NDArray[np.bool_]) -> "Delta":
        """Return the chosen rows."""
        return self._of(chosen, chosen[self.source])

    def rows(self, first: int, last: int) -> "Delta":
        """Return some consecutive rows: less work than a cut."""
        chosen = np.zeros(self.neurons, np.bool_)
        chosen[first:last] = True
        return self._of(chosen, slice(int(self.row_starts[first]), int(self.row_starts[last])))

    def _of(self, chosen: npt.NDArray[np.bool_], held: npt.NDArray[np.bool_] | slice) -> "Delta":
        """Return the chosen rows, whose connections are those held."""
        kept = chosen.copy()
        kept[self.target[held]] = True
        slot = np.cumsum(kept) - 1
        concept, feature = self.concept[kept], self.feature[kept]
        rows = np.where(chosen, self.lengths, 0)[kept]
        used = np.unique(np.concatenate([concept, feature])).tolist()
        return Delta(
            concept,
            feature,
            np.where(chosen, self.count, 0)[kept],
            np.concatenate([[0], np.cumsum(rows)]),
            slot[self.target[held]].astype(np.int32),
            self.branch[held],
            self.segment[held],
            self.strength[held],
            {number: self.names[number] for number in used if number in self.names},
        )


EMPTY = Delta(
    np.empty(0, np.uint64),
    np.empty(0, np.uint64),
    np.empty(0, np.int64),
    np.zeros(1, np.int64),
    np.empty(0, np.int32),
    np.empty(0, np.uint8),
    np.empty(0, np.uint8),
    np.empty(0, np.int64),
)


def unique_neurons(concept: Ids, feature: Ids) -> tuple[Ids, Ids, Ints]:
    """Return the distinct neurons in order, and each given one's index among them."""
    order = np.lexsort((feature, concept))
    concept, feature = concept[order], feature[order]
    new = first_of_runs(concept) | first_of_runs(feature)
    slot = np.empty(len(order), np.int64)
    slot[order] = np.cumsum(new) - 1
    return concept[new], feature[new], slot


def first_of_runs(ascending: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values differ from the one before them."""
    first = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return first


def total(deltas: Sequence[Delta]) -> Delta:
    """Add deltas up."""
    if len(deltas) == 1:
        return deltas[0]
    parts = [delta for delta in deltas if delta.neurons]
    if not parts:
        return EMPTY
    concept, feature, slot = unique_neurons(
        np.concatenate([part.concept for part in parts]),
        np.concatenate([part.feature for part in parts]),
    )
    count = np.zeros(len(concept), np.int64)
    slots = np.split(slot, np.cumsum([part.neurons for part in parts])[:-1])
    for part, at in zip(parts, slots, strict=True):
        count[at] += part.count  # no neuron stands twice in a part
    paired = list(zip(parts, slots, strict=True))
    key = ConnectionKey.for_sizes(
        len(concept),
        max(int(part.branch.max(initial=0)) for part in parts) + 1,
        max(int(part.segment.max(initial=0)) for part in parts) + 1,
    )
    packed, strength = _summed(
        np.concatenate([key.of(p, at) for p, at in paired]),
        np.concatenate([part.strength for part in parts]),
        terms=len(parts),
    )
    return key.delta(
        concept, feature, count, packed, strength, joined_names([p.names for p in parts])
    )


def contains(whole: Delta, part: Delta) -> bool:
    """Tell whether one can come from the other by addition: nothing of it is less, or gone."""
    if not part.neurons:
        return True
    alike = np.isin(whole.concept, part.concept) & np.isin(whole.feature, part.feature)
    some = whole.only(alike)  # what is beside it need not be gone through
    both = total([some, part])
    if both.neurons != some.neurons or both.connections != some.connections:
        return False
    return bool(np.all(both.count <= 2 * some.count) and np.all(both.strength <= 2 * some.strength))


@dataclass(frozen=True)
class ConnectionKey:
    """Packs (source, target, branch, segment) into one whole number that sorts like them."""

    slot_bits: int
    branch_bits: int
    segment_bits: int

    @classmethod
    def for_sizes(cls, neurons: int, branches: int, segments: int) -> "ConnectionKey":
        """Return the key for so many of each; OverflowError where 63 bits cannot hold it."""
        key = cls(
            (neurons - 1).bit_length(), (branches - 1).bit_length(), (segments - 1).bit_length()
        )
        if 2 * key.slot_bits + key.branch_bits + key.segment_bits > _KEY_BITS:
            raise OverflowError(f"{neurons} neurons are too many for one delta")
        return key

    def pack(self, source: Whole, target: Whole, branch: Whole, segment: Whole) -> Whole:
        """Pack, on any device."""
        pair = (source << self.slot_bits) | target
        return (((pair << self.branch_bits) | branch) << self.segment_bits) | segment

    def of(self, part: Delta, at: Ints) -> Ints:
        """Pack a delta's connections, whose neurons have the numbers `at`."""
        branch, segment = part.branch.astype(np.int64), part.segment.astype(np.int64)
        return self.pack(at[part.source], at[part.target], branch, segment)

    def delta(
        self, concept: Ids, feature: Ids, count: Ints, packed: Ints, strength: Ints, names: Names
    ) -> Delta:
        """Return the delta of sorted distinct packed connections."""
        low = packed & ((1 << (self.segment_bits + self.branch_bits)) - 1)
        pair = packed >> (self.segment_bits + self.branch_bits)
        return Delta(
            concept,
            feature,
            count,
            np.searchsorted(pair >> self.slot_bits, np.arange(len(concept) + 1)).astype(np.int64),
            (pair & ((1 << self.slot_bits) - 1)).astype(np.int32),
            (low >> self.segment_bits).astype(np.uint8),
            (low & ((1 << self.segment_bits) - 1)).astype(np.uint8),
            strength,
            names,
        )


def _summed(keys: Ints, strength: Ints, terms: int) -> tuple[Ints, Ints]:
    """Sort by key and add up what shares one; each key stands at most once in each of the terms."""
    if int(strength.max(initial=0)) * terms >= 1 << _KEY_BITS:
        raise OverflowError("a connection's strength would outgrow 64 bits")
    if not len(keys):
        return keys, strength
    order = np.argsort(keys, kind="stable")  # linear on sorted parts, which is what comes here
    keys = keys[order]
    first = np.flatnonzero(first_of_runs(keys))
    return keys[first], np.add.reduceat(strength[order], first)
