"""The board: slots for the neurons that minds have touched, and rows as indices over the slots.

A row refers to its targets by 128 bits each; a state needs indices into an array. The board assigns
a slot to every neuron that is touched, and converts each row into arrays of indices: once for all
minds that share the board.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.arrays import Array
from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.lexicon import Delimiter, delimiter
from giaann_p2p.model.manner import Variant
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.slots import Slots
from giaann_p2p.model.spec import UNITS, ModelSpec
from giaann_p2p.model.subwords.logarithm import tanh

ONE = 1 << 24
"""The integer that stands for an activation of 1."""

EQUAL_GAIN = round(math.tanh(1 / 200) * ONE)
"""The activation that a connection adds if strengths are not graded: that of the strength 1."""

CONNECTION_BYTES = 60
"""The approximate memory per connection of a wiring and its row, in bytes."""
_MOST_SLOTS = 1 << 13
"""A mind's state spans all slots up to the last one that it touches, so more slots would make the
states of all minds that share the board large."""
_MOST_CONNECTIONS = 1 << 20
_MOST_AHEAD = 256
"""The most connections of a row that are considered for prefetching: the strongest ones."""


class Ahead(NamedTuple):
    """Connections of a row to neurons that may come two or more tokens later, h of them."""

    target: Ints
    """Shape [h]: the index of each target among the row's targets."""
    slot: Ints
    place: Ints
    """Shape [h]: the index in A and T of the segment that each connection hits."""
    segment: Ints
    strength: Ints


@dataclass(eq=False)
class Wiring:
    """A row as arrays of indices over the slots of a board.

    Its m connections are in two groups, c to column segments, then f to feature segments.
    """

    row: Row
    slot: int
    """The slot of the row's own neuron."""
    end: int
    """One more than the largest slot here: a state that fires the row needs this many slots."""
    parts: Sequence[Array]
    """In this order: the index in A and T of each connection's target segment, [c] and [f]; 1 for
    each connection that waits for the previous segment, else 0, [f]; the candidates' slots, [k]; if
    strengths are graded, the gain of each connection, [c] and [f]. On the host until `sent`."""
    columns: int
    """c, the number of connections to column segments, which wait for nothing."""
    features: int
    """f, the number of connections to feature segments."""
    adjacent_index: Ints
    """Shape [k]: the index of each candidate among the row's targets, ascending."""
    adjacent_strength: Ints
    """Shape [k]: the total strength of the connections to each candidate in the last segment."""
    inside: npt.NDArray[np.bool_]
    """Shape [k]: whether each candidate is in the row's own column."""
    targets: Ints
    """Shape [n]: the slots of the row's targets."""
    spec: ModelSpec
    sent: bool = False

    @cached_property
    def reachable(self) -> npt.NDArray[np.bool_]:
        """Shape [k]: whether the row may choose each candidate; only a delimiter leads out of its
        column."""
        fired = self.row.neuron
        if fired.feature != PRIME and delimiter(self.row.name.word) is not Delimiter.NONE:
            return np.ones(len(self.inside), np.bool_)
        return self.inside

    @cached_property
    def ahead(self) -> Ahead:
        """The connections to neurons that may come after the next word."""
        row, last = self.row, self.spec.segments - 1
        at = np.flatnonzero((row.segment > self.spec.column_segments) & (row.segment < last))
        if len(at) > _MOST_AHEAD:
            at = at[np.argpartition(-row.strength[at], _MOST_AHEAD)[:_MOST_AHEAD]]
        target, segment = row.target[at], row.segment[at].astype(np.int64)
        slot = self.targets[target]
        place = (slot * self.spec.branches + row.branch[at]) * self.spec.segments + segment
        return Ahead(target, slot, place, segment, row.strength[at])


class Board:
    """The slots of neurons, and the wired rows; shared by minds.

    A board only grows; once it is `full`, the next minds should begin with a new board.
    """

    def __init__(self, spec: ModelSpec, variant: Variant) -> None:
        self.spec = spec
        self.variant = variant
        self._slots = Slots()
        self._connections = 0
        self._wirings: dict[Neuron, Wiring] = {}

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def full(self) -> bool:
        """Whether further minds should begin with another board."""
        return len(self) > _MOST_SLOTS or self._connections > _MOST_CONNECTIONS

    @property
    def nbytes(self) -> int:
        """The approximate memory of all wirings, in bytes."""
        return self._connections * CONNECTION_BYTES

    def wire(self, row: Row) -> Wiring:
        """Return the wiring of a row; it is made once, and again if the row has changed."""
        wiring = self._wirings.get(row.neuron)
        if wiring is None or not (wiring.row is row or wiring.row.same(row)):
            self._connections += len(row.target) - (
                wiring.columns + wiring.features if wiring else 0
            )
            wiring = self._wirings[row.neuron] = self._lay_out(row)
        return wiring

    def _lay_out(self, row: Row) -> Wiring:
        spec, segment = self.spec, row.segment
        slot, targets = self._slots.of(row)
        place = (targets * (spec.branches * spec.segments))[row.target]  # [m]
        place += np.multiply(row.branch, spec.segments, dtype=np.int64)
        place += segment
        in_feature = segment >= spec.column_segments
        column, feature = (~in_feature).nonzero()[0], in_feature.nonzero()[0]
        last = (segment == spec.segments - 1).nonzero()[0]
        nearest = row.target[last]  # one for each branch, so a target may occur several times
        first = first_of_runs(nearest).nonzero()[0]
        adjacent = nearest[first]
        waits = segment[feature] > spec.column_segments
        gains = [column, feature] if self.variant.graded_strengths else []
        return Wiring(
            row,
            slot,
            1 + max(slot, int(targets.max(initial=0))),
            [place[column], place[feature], waits.astype(np.int64), targets[adjacent]]
            + [_gain(row.strength[group]) for group in gains],
            len(column),
            len(feature),
            adjacent,
            np.add.reduceat(row.strength[last], first) if len(first) else row.strength[:0],
            row.target_concept[adjacent] == np.uint64(row.neuron.concept),
            targets,
            spec,
        )


def _gain(strength: Ints) -> Ints:
    """Return 2 (sigmoid(x / 100) - 1/2), which equals tanh(x / 200), in units of ONE.

    NumPy's own tanh is not used, because its last bits differ between processors.
    """
    gain: Ints = np.rint(tanh(strength / UNITS / 200) * ONE).astype(np.int64)
    return gain
