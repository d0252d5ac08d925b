"""Deltas: learned knowledge as arrays, the sum of the increments of some sequences.

A delta is what one chunk adds. The knowledge of a brain is the sum of its chunks' deltas, and is a
delta itself. Addition is associative and commutative to the last byte, and `EMPTY` is its zero:
strengths and counts are sums of integers, and if a hash collision gives two texts to one number,
the smaller text wins. This is the reason why a swarm can equal one machine.

Neurons are in the order of (concept, feature), connections in the order of (source, target, branch,
segment): a column, a shard or a row is a slice, and equal knowledge has equal bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ids, Ints, Names, joined_names

if TYPE_CHECKING:  # a client handles deltas, and importing torch takes a second
    import torch

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
"""The names of a delta's arrays, in the order of its fields."""

_KEY_BITS = 63
Whole = TypeVar("Whole", Ints, "torch.Tensor")
"""Integers as a numpy array, or as a torch tensor on any device."""


@dataclass(frozen=True, eq=False)
class Delta:
    """Learned knowledge: V neurons and M connections."""

    concept: Ids
    """Shape [V]: the concept of each neuron."""
    feature: Ids
    """Shape [V]: the feature of each neuron."""
    count: Ints
    """Shape [V]: how often each neuron occurred."""
    row_starts: Ints
    """Shape [V + 1]: where each neuron's outgoing connections start, and the end of the last."""
    target: Slots
    """Shape [M]: the index of each connection's target neuron."""
    branch: Bytes
    """Shape [M]: the branch of each connection at its target."""
    segment: Bytes
    """Shape [M]: the segment of each connection at its target."""
    strength: Ints
    """Shape [M]: the strength of each connection, in units of 2^-16. Invariant: above 0."""
    names: Names = field(default_factory=dict)
    """The text of every concept and feature."""

    @property
    def neurons(self) -> int:
        """V, the number of neurons."""
        return len(self.concept)

    @property
    def connections(self) -> int:
        """M, the number of connections."""
        return len(self.target)

    @property
    def lengths(self) -> Ints:
        """The number of connections of each neuron's row, of shape [V]."""
        return self.row_starts[1:] - self.row_starts[:-1]

    @cached_property
    def source(self) -> Slots:
        """The index of each connection's source neuron, of shape [M]."""
        return np.repeat(np.arange(self.neurons, dtype=np.int32), self.lengths)

    def find(self, concept: int, feature: int) -> int | None:
        """Return the index of a neuron; None if the delta lacks it."""
        first = np.searchsorted(self.concept, np.uint64(concept), "left")
        last = np.searchsorted(self.concept, np.uint64(concept), "right")
        at = int(first + np.searchsorted(self.feature[first:last], np.uint64(feature)))
        return at if at < last and self.feature[at] == np.uint64(feature) else None

    def cut(self, part: Ints) -> dict[int, "Delta"]:
        """Split by rows: neuron i goes to part[i]. The sum of the parts is the whole."""
        return {number: self.only(part == number) for number in np.unique(part).tolist()}

    def only(self, chosen: npt.NDArray[np.bool_]) -> "Delta":
        """Return the chosen rows."""
        return self.take(np.flatnonzero(chosen))

    def rows(self, first: int, last: int) -> "Delta":
        """Return a range of consecutive rows."""
        held = slice(int(self.row_starts[first]), int(self.row_starts[last]))
        return self._part(np.arange(first, last), held)

    def take(self, rows: Ints) -> "Delta":
        """Return the rows at ascending indices."""
        lengths, starts = self.lengths[rows], self.row_starts[rows]
        ends = np.cumsum(lengths)
        return self._part(
            rows, np.arange(lengths.sum()) + np.repeat(starts - ends + lengths, lengths)
        )

    def _part(self, rows: Ints, held: Ints | slice) -> "Delta":
        """Return some rows; `held` selects their connections."""
        reached = self.target[held]
        if len(reached) < self.neurons:  # to sort them is quicker than to look at all neurons
            kept = np.union1d(rows, reached)
            at, target = np.searchsorted(kept, rows), np.searchsorted(kept, reached)
        else:
            slot = np.zeros(self.neurons, np.int64)
            slot[rows] = slot[reached] = 1
            kept = np.flatnonzero(slot)
            slot[kept] = np.arange(len(kept))
            at, target = slot[rows], slot[reached]
        count, lengths = np.zeros(len(kept), np.int64), np.zeros(len(kept), np.int64)
        count[at], lengths[at] = self.count[rows], self.lengths[rows]
        concept, feature = self.concept[kept], self.feature[kept]
        used = np.unique(np.concatenate([concept, feature])).tolist()
        return Delta(
            concept,
            feature,
            count,
            np.concatenate([[0], np.cumsum(lengths)]),
            target.astype(np.int32),
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
    """Return the distinct neurons in order, and the index of each given neuron among them."""
    order = np.lexsort((feature, concept))
    concept, feature = concept[order], feature[order]
    new = first_of_runs(concept) | first_of_runs(feature)
    slot = np.empty(len(order), np.int64)
    slot[order] = np.cumsum(new) - 1
    return concept[new], feature[new], slot


def first_of_runs(ascending: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which values differ from the one before them."""
    first = np.empty(len(ascending), np.bool_)
    first[:1] = True
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
        count[at] += part.count  # no neuron occurs twice in a part
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
    """Return whether `whole` has all of `part`, with counts and strengths that are not less."""
    if not part.neurons:
        return True
    alike = np.isin(whole.concept, part.concept) & np.isin(whole.feature, part.feature)
    some = whole.only(alike)  # rows that the part cannot have need no comparison
    both = total([some, part])
    if both.neurons != some.neurons or both.connections != some.connections:
        return False
    return bool(np.all(both.count <= 2 * some.count) and np.all(both.strength <= 2 * some.strength))


@dataclass(frozen=True)
class ConnectionKey:
    """Packs (source, target, branch, segment) into one integer with the same sort order."""

    slot_bits: int
    branch_bits: int
    segment_bits: int

    @classmethod
    def for_sizes(cls, neurons: int, branches: int, segments: int) -> "ConnectionKey":
        """Return the key for these numbers of values; OverflowError if it exceeds 63 bits."""
        key = cls(
            (neurons - 1).bit_length(), (branches - 1).bit_length(), (segments - 1).bit_length()
        )
        if 2 * key.slot_bits + key.branch_bits + key.segment_bits > _KEY_BITS:
            raise OverflowError(f"{neurons} neurons are too many for one delta")
        return key

    def pack(self, source: Whole, target: Whole, branch: Whole, segment: Whole) -> Whole:
        """Pack the four numbers of each connection, on any device."""
        pair = (source << self.slot_bits) | target
        return (((pair << self.branch_bits) | branch) << self.segment_bits) | segment

    def of(self, part: Delta, at: Ints) -> Ints:
        """Pack a delta's connections; neuron i has the number at[i]."""
        branch, segment = part.branch.astype(np.int64), part.segment.astype(np.int64)
        return self.pack(at[part.source], at[part.target], branch, segment)

    def delta(
        self, concept: Ids, feature: Ids, count: Ints, packed: Ints, strength: Ints, names: Names
    ) -> Delta:
        """Return the delta of packed connections, which are sorted and distinct."""
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
    """Sort by key and add up strengths of equal keys; a key occurs at most once in each term."""
    if int(strength.max(initial=0)) * terms >= 1 << _KEY_BITS:
        raise OverflowError("a connection's strength would outgrow 64 bits")
    if not len(keys):
        return keys, strength
    order = np.argsort(keys, kind="stable")  # linear time, because the parts are sorted
    keys = keys[order]
    first = np.flatnonzero(first_of_runs(keys))
    return keys[first], np.add.reduceat(strength[order], first)
