"""Encodes connections as links and steps: which neurons are linked, and at which places.

A link is a pair (source, target). Each row has a number of links; the target of a link is encoded
as the number of neurons skipped since the target of the row's previous link. A connection is
encoded as a step, place + state * P: the place is branch and segment in one number, and P is the
number of places. The state is 0 for the first connection of a link; 1 for a further connection with
the same strength as the one before; 2 for a further connection with another strength. State 1 is
the most frequent, because a token that is near enough for a column segment adds the same strength
to a column segment and to a feature segment.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import Bytes, Delta, Slots, first_of_runs
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.codec.strengths import SAMPLE, Places, Strengths, numbered, restored

_STATES = 3
Flags = npt.NDArray[np.bool_]
Whole = Slots | Ints


class Shape(NamedTuple):
    """The number of branches, and the number of segments; a place combines one of each."""

    branches: int
    segments: int

    @property
    def places(self) -> int:
        """The number of places: branches times segments."""
        return self.branches * self.segments

    @property
    def dtype(self) -> np.dtype[Any]:
        """The narrowest unsigned type that holds every step."""
        return np.min_scalar_type(_STATES * self.places - 1)


class Links(NamedTuple):
    """Encoded connections without their strengths: M connections of K links of V rows."""

    links: Ints
    """Shape [V]: the number of links of each row."""
    skips: Ints
    """Shape [K]: the number of neurons skipped since the target of the row's previous link."""
    steps: Places
    """Shape [M]: the step of each connection: place + state * P, with P places."""


class Traced(NamedTuple):
    """Decoded connections: M connections of K links of R rows."""

    rows: Ints
    """Shape [R + 1]: where each row's links start, and the end of the last."""
    ends: Ints
    """Shape [K + 1]: where each link's connections start, and the end of the last."""
    target: Ints
    """Shape [K]: the index of the neuron that each link leads to."""
    branch: Bytes
    """Shape [M]: the branch of each connection."""
    segment: Bytes
    """Shape [M]: the segment of each connection."""
    strength: Ints
    """Shape [M]: the strength of each connection."""


class Reached(NamedTuple):
    """Decoded connections, as the arrays of a delta."""

    row_starts: Ints
    target: Slots
    branch: Bytes
    segment: Bytes
    strength: Ints


def shape_of(delta: Delta) -> Shape:
    """Return the smallest shape that has all branches and segments of a delta."""
    return Shape(int(delta.branch.max(initial=0)) + 1, int(delta.segment.max(initial=0)) + 1)


def linked(delta: Delta, shape: Shape) -> tuple[Links, Strengths]:
    """Encode a delta's connections as links, and their strengths."""
    return chained(delta.target, delta.row_starts, _places(delta, shape), delta.strength, shape)


def chained(
    target: Whole,
    row_starts: Ints,
    place: Places,
    strength: Ints,
    shape: Shape,
    sample: int = SAMPLE,
) -> tuple[Links, Strengths]:
    """Encode connections as links, and their strengths; `place` has the dtype of the shape."""
    new = first_of_runs(target)
    new[row_starts[:-1][row_starts[1:] > row_starts[:-1]]] = True
    stated = first_of_runs(strength)
    stated |= new
    state = (stated ^ new).view(np.uint8)  # 1 for a further connection with another strength
    state += ~new
    coded = numbered(strength[stated], place[stated], sample)
    lengths, skips = _skips(target, row_starts, new.nonzero()[0])
    return Links(lengths, skips, place + state * shape.dtype.type(shape.places)), coded


def reached(links: Links, strengths: Strengths, shape: Shape) -> Reached:
    """Decode the connections of a delta, which has one row for each neuron.

    DamagedError if they are invalid.
    """
    found = traced(links, strengths, shape, len(links.links))
    ends = found.ends
    target = found.target.astype(np.int32).repeat(ends[1:] - ends[:-1])
    return Reached(ends[found.rows], target, *found[3:])


def traced(links: Links, strengths: Strengths, shape: Shape, neurons: int) -> Traced:
    """Decode connections; DamagedError if they are invalid or a target is not below `neurons`."""
    ends = _ends(links.steps, shape)
    rows = np.zeros(len(links.links) + 1, np.int64)
    links.links.cumsum(out=rows[1:])
    check(rows[-1] == len(links.skips) == len(ends) - 1, "rows, targets and steps do not match")
    target = _targets(links, rows, neurons)
    place = np.tile(np.arange(shape.places, dtype=shape.dtype), _STATES).take(links.steps)
    _check_order(place, links.steps < shape.places)
    strength = _strength(links.steps, place, strengths, shape.places)
    branch, segment = np.divmod(np.arange(shape.places), shape.segments)
    branch, segment = branch.astype(np.uint8), segment.astype(np.uint8)
    return Traced(rows, ends, target, branch.take(place), segment.take(place), strength)


def _ends(steps: Places, shape: Shape) -> Ints:
    """Return where each link's connections start, and the end of the last link's."""
    check(steps.max(initial=0) < _STATES * shape.places, "a step is out of range")
    (new,) = (steps < shape.places).nonzero()
    check(not len(steps) or (len(new) > 0 and new[0] == 0), "a connection belongs to no link")
    return np.append(new, len(steps))


def _places(delta: Delta, shape: Shape) -> Places:
    places = delta.branch.astype(shape.dtype)
    places *= shape.dtype.type(shape.segments)
    places += delta.segment
    return places


def _skips(target: Whole, row_starts: Ints, new: Ints) -> tuple[Ints, Ints]:
    rows = np.searchsorted(new, row_starts)
    lengths = rows[1:] - rows[:-1]
    target = target[new]
    skips = target - 1
    skips[1:] -= target[:-1]
    first = rows[:-1][lengths > 0]
    skips[first] = target[first]
    return lengths.astype(np.uint32), skips.astype(np.uint32)


def _targets(links: Links, rows: Ints, neurons: int) -> Ints:
    """Return each link's target; the sums of 32-bit skips cannot overflow 63 bits."""
    far = np.full(len(links.skips) + 1, -1)
    links.skips.cumsum(out=far[1:])
    far[1:] += np.arange(len(links.skips))
    target: Ints = far[1:] - (far[rows[:-1]] + 1).repeat(links.links)
    check(target.max(initial=-1) < neurons, "the target of a link does not exist")
    return target


def _check_order(place: Places, new: Flags) -> None:
    check(((place[1:] > place[:-1]) | new[1:]).all(), "the places of a link do not ascend")


def _strength(steps: Places, place: Places, strengths: Strengths, places: int) -> Ints:
    stated = (steps < places) | (steps >= 2 * places)
    (at,) = stated.nonzero()
    values = restored(strengths, place[at])
    ends = np.append(at[1:], len(steps))
    return values.repeat(ends - at)
