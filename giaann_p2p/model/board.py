"""The board of a prompt: slots for the touched neurons, and rows as tensor indices over the slots.

A row refers to its targets by 128 bits each; a state needs indices into a tensor. The board assigns
a slot to every neuron that is touched, and converts each row, once, into index tensors.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.lexicon import Delimiter, delimiter
from giaann_p2p.model.manner import Variant
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.model.sequence import Ids, Ints
from giaann_p2p.model.spec import UNITS, ModelSpec

ONE = 1 << 24
"""The integer that stands for an activation of 1."""

_PAIR = np.dtype("S16")
"""A concept and a feature as 16 bytes, which numpy can sort and search."""

_PLACE_BYTES, _CONNECTION_BYTES = 28, 44
"""Bytes per place (its activation under three timings, its time under one), and per connection of a
wiring."""
_MOST_SLOTS = 1 << 17
_MOST_CONNECTIONS = 1 << 20


@dataclass(frozen=True, eq=False)
class Wiring:
    """A row as index tensors over the slots of one prompt, on its device."""

    row: Row
    slot: int
    """The slot of the row's own neuron."""
    place: torch.Tensor
    """Shape [m]: the index in A and T of each connection's target segment."""
    before: torch.Tensor
    """Shape [m]: the index of the segment before each connection's target segment."""
    waits: torch.Tensor
    """Shape [m], bool: whether the target is a feature segment after the first."""
    feature: torch.Tensor
    """Shape [m], bool: whether the target is a feature segment."""
    gain: torch.Tensor
    """Shape [m]: the activation that each connection adds, in units of ONE."""
    adjacent: torch.Tensor
    """Shape [k]: the slots of the targets that may come next."""
    adjacent_index: Ints
    """Shape [k]: the index of each of them among the row's targets, ascending."""
    adjacent_strength: Ints
    """Shape [k]: the total strength of the connections to each of them in the last segment."""
    reachable: npt.NDArray[np.bool_]
    """Shape [k]: whether the row may choose each of them: without a delimiter, only in its own
    column."""


class Numbering:
    """Numbers neurons densely, in order of arrival."""

    def __init__(self) -> None:
        self._known = np.empty(0, _PAIR)  # in ascending order
        self._numbers = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self._known)

    def of(self, concept: Ids, feature: Ids) -> Ints:
        """Return each neuron's number; new neurons get the next numbers."""
        pairs = np.stack([concept, feature], axis=1).view(_PAIR)[:, 0]
        at = np.searchsorted(self._known, pairs)
        new = np.ones(len(pairs), np.bool_)
        inside = at < len(self)
        new[inside] = self._known[at[inside]] != pairs[inside]
        if new.any():
            added = np.unique(pairs[new])
            where = np.searchsorted(self._known, added)
            numbers = np.arange(len(self), len(self) + len(added))
            self._known = np.insert(self._known, where, added)
            self._numbers = np.insert(self._numbers, where, numbers)
            at = np.searchsorted(self._known, pairs)
        return self._numbers[at]


class Board:
    """The slots of neurons, and the wired rows; shared by states, and by successive prompts.

    A board only grows; once it is `full`, the next prompt should begin with a new board.
    """

    def __init__(self, spec: ModelSpec, variant: Variant, device: torch.device) -> None:
        self.spec = spec
        self.variant = variant
        self.device = device
        self._slots = Numbering()
        self._connections = 0
        self._wirings: dict[Neuron, Wiring] = {}

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def full(self) -> bool:
        """Whether the board should be replaced, because it takes some 100 MB with the states."""
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
        spec = self.spec
        own = np.array([row.neuron], np.uint64)
        slots = self._slots.of(
            np.concatenate([own[:, 0], row.target_concept]),
            np.concatenate([own[:, 1], row.target_feature]),
        )
        targets = slots[1:]  # [k]
        segment = row.segment.astype(np.int64)
        place = (targets[row.target] * spec.branches + row.branch) * spec.segments + segment  # [m]
        last = segment == spec.segments - 1
        nearest = row.target[last]  # one for each branch, so a target may occur several times
        first = np.flatnonzero(first_of_runs(nearest))
        adjacent = nearest[first]
        strength = np.add.reduceat(row.strength[last], first) if len(first) else row.strength[:0]
        return Wiring(
            row,
            int(slots[0]),
            self._tensor(place),
            self._tensor(np.maximum(place - 1, 0)),  # unused in the first segment
            self._tensor(segment > spec.column_segments),
            self._tensor(segment >= spec.column_segments),
            self._tensor(self._gain(row.strength)),
            self._tensor(targets[adjacent]),
            adjacent,
            strength,
            self._reachable(row, adjacent),
        )

    def _gain(self, strength: Ints) -> Ints:
        """Return 2 (sigmoid(x / 100) - 1/2), which equals tanh(x / 200), in units of ONE."""
        x = strength / UNITS if self.variant.graded_strengths else np.ones(len(strength))
        gain: Ints = np.rint(np.tanh(x / 200) * ONE).astype(np.int64)
        return gain

    def _reachable(self, row: Row, adjacent: Ints) -> npt.NDArray[np.bool_]:
        fired = row.neuron
        if fired.feature != PRIME and delimiter(row.name.word) is not Delimiter.NONE:
            return np.ones(len(adjacent), np.bool_)
        inside: npt.NDArray[np.bool_] = row.target_concept[adjacent] == np.uint64(fired.concept)
        return inside

    def _tensor(self, array: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)
