"""The board of a prompt: slots for the touched neurons, and rows as indices over the slots.

A row refers to its targets by 128 bits each; a state needs indices into an array. The board assigns
a slot to every neuron that is touched, and converts each row, once, into arrays of indices.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from giaann_p2p.model.arrays import Array, arrays_on
from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.lexicon import Delimiter, delimiter
from giaann_p2p.model.manner import Variant
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.slots import Slots
from giaann_p2p.model.spec import UNITS, ModelSpec

ONE = 1 << 24
"""The integer that stands for an activation of 1."""

_EQUAL_GAIN = round(math.tanh(1 / 200) * ONE)
"""The activation that a connection adds if strengths are not graded: that of the strength 1."""

_PLACE_BYTES, _CONNECTION_BYTES = 28, 44
"""Bytes per place (its activation under three timings, its time under one), and per connection of a
wiring."""
_MOST_SLOTS = 1 << 15  # more would be slower: a processor's caches hold no more
_MOST_CONNECTIONS = 1 << 20


@dataclass(frozen=True, eq=False)
class Wiring:
    """A row as arrays of indices over the slots of one prompt, on its device.

    Its m connections are in two groups, c to column segments, then f to feature segments.
    """

    row: Row
    slot: int
    """The slot of the row's own neuron."""
    place: Array
    """Shape [m]: the index in A and T of each connection's target segment."""
    columns: int
    """c, the number of connections to column segments, which wait for nothing."""
    begins: Array
    """Shape [f], bool: whether the target is the first feature segment, which waits for none."""
    column_gain: Array
    """Shape [c]: the activation that each connection adds, in units of ONE; a number if it is the
    same for all."""
    feature_gain: Array
    """Shape [f]: the same of those to feature segments."""
    feature: Ints
    """Shape [f]: the index of each connection to a feature segment among the row's connections."""
    adjacent: Array
    """Shape [k]: the slots of the targets that may come next."""
    adjacent_index: Ints
    """Shape [k]: the index of each of them among the row's targets, ascending."""
    adjacent_strength: Ints
    """Shape [k]: the total strength of the connections to each of them in the last segment."""
    reachable: npt.NDArray[np.bool_]
    """Shape [k]: whether the row may choose each of them: without a delimiter, only in its own
    column."""


class Board:
    """The slots of neurons, and the wired rows; shared by states, and by successive prompts.

    A board only grows; once it is `full`, the next prompt should begin with a new board.
    """

    def __init__(self, spec: ModelSpec, variant: Variant, device: torch.device) -> None:
        self.spec = spec
        self.variant = variant
        self.device = device
        self.arrays = arrays_on(device)
        self._slots = Slots()
        self._connections = 0
        self._wirings: dict[Neuron, Wiring] = {}

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def full(self) -> bool:
        """Whether the board should be replaced, because it takes some 60 MB with the states."""
        return len(self) > _MOST_SLOTS or self._connections > _MOST_CONNECTIONS

    @property
    def nbytes(self) -> int:
        """The approximate memory in bytes, with the states of the three timings of `auto`."""
        places = len(self) * self.spec.branches * self.spec.segments
        return places * _PLACE_BYTES + self._connections * _CONNECTION_BYTES

    def row(self, neuron: Neuron) -> Row | None:
        """Return a neuron's row if it is wired, else None."""
        wiring = self._wirings.get(neuron)
        return None if wiring is None else wiring.row

    def wire(self, row: Row) -> Wiring:
        """Return the wiring of a row, which is made once and cached."""
        wiring = self._wirings.get(row.neuron)
        if wiring is None:
            wiring = self._wirings[row.neuron] = self._lay_out(row)
            self._connections += len(row.target)
        return wiring

    def _lay_out(self, row: Row) -> Wiring:
        spec, segment, of = self.spec, row.segment, self.arrays.of
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
        strength = np.add.reduceat(row.strength[last], first) if len(first) else row.strength[:0]
        order = np.concatenate([column, feature])
        return Wiring(
            row,
            slot,
            of(place[order]),
            len(column),
            of(segment[feature] == spec.column_segments),
            self._gain(row.strength[column]),
            self._gain(row.strength[feature]),
            feature,
            of(targets[adjacent]),
            adjacent,
            strength,
            self._reachable(row, adjacent),
        )

    def _gain(self, strength: Ints) -> Array:
        """Return 2 (sigmoid(x / 100) - 1/2), which equals tanh(x / 200), in units of ONE."""
        if not self.variant.graded_strengths:
            return _EQUAL_GAIN
        return self.arrays.of(np.rint(np.tanh(strength / UNITS / 200) * ONE).astype(np.int64))

    def _reachable(self, row: Row, adjacent: Ints) -> npt.NDArray[np.bool_]:
        fired = row.neuron
        if fired.feature != PRIME and delimiter(row.name.word) is not Delimiter.NONE:
            return np.ones(len(adjacent), np.bool_)
        inside: npt.NDArray[np.bool_] = row.target_concept[adjacent] == np.uint64(fired.concept)
        return inside
