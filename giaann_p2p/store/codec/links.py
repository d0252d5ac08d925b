"""Connections as steps: which neurons are linked, and at which places.

A link is a pair (source, target). Each row has so many links, and a link's target is told by how
many neurons it skips since the row's last one. A connection is a step: its place, that is branch
and segment in one number, plus P for each of these, where P is the number of places: 0 if it is the
first of its link; 1 if it goes on with the link and is as strong as the one before, as most are,
since a token near enough for a column segment adds the same to both; 2 if it is not as strong.
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
    """How many branches and segments there are places for."""

    branches: int
    segments: int

    @property
    def places(self) -> int:
        """P."""
        return self.branches * self.segments

    @property
    def dtype(self) -> np.dtype[Any]:
        """The narrowest type that holds every step."""
        return np.min_scalar_type(_STATES * self.places - 1)


class Links(NamedTuple):
    """Connections without strengths, ready to be packed: K links of V rows."""

    links: Ints
    """[V] how many each row has."""
    skips: Ints
    """[K]"""
    steps: Places
    """[M]"""


class Traced(NamedTuple):
    """Connections by links: M connections of K links of R rows."""

    rows: Ints
    """[R + 1] where each row's links start, and the end of the last."""
    ends: Ints
    """[K + 1] where each link's connections start, and the end of the last."""
    target: Ints
    """[K] index of the neuron that the link leads to."""
    branch: Bytes
    """[M]"""
    segment: Bytes
    """[M]"""
    strength: Ints
    """[M]"""


class Reached(NamedTuple):
    """Connections, as a delta has them."""

    row_starts: Ints
    target: Slots
    branch: Bytes
    segment: Bytes
    strength: Ints


def shape_of(delta: Delta) -> Shape:
    """Return the least shape that holds the delta."""
    return Shape(int(delta.branch.max(initial=0)) + 1, int(delta.segment.max(initial=0)) + 1)


def linked(delta: Delta, shape: Shape) -> tuple[Links, Strengths]:
    """Return a delta's connections in their short form."""
    return chained(delta.target, delta.row_starts, _places(delta, shape), delta.strength, shape)


def chained(
    target: Whole,
    row_starts: Ints,
    place: Places,
    strength: Ints,
    shape: Shape,
    sample: int = SAMPLE,
) -> tuple[Links, Strengths]:
    """Return connections in their short form; `place` is of the shape's type."""
    new = first_of_runs(target)
    new[row_starts[:-1][row_starts[1:] > row_starts[:-1]]] = True
    told = first_of_runs(strength)
    told |= new
    state = (told ^ new).view(np.uint8)  # 1 for a link that goes on with another strength
    state += ~new
    coded = numbered(strength[told], place[told], sample)
    lengths, skips = _skips(target, row_starts, new.nonzero()[0])
    return Links(lengths, skips, place + state * shape.dtype.type(shape.places)), coded


def reached(links: Links, strengths: Strengths, shape: Shape) -> Reached:
    """Return the connections of the rows, one for each neuron; DamagedError if they are none."""
    found = traced(links, strengths, shape, len(links.links))
    ends = found.ends
    target = found.target.astype(np.int32).repeat(ends[1:] - ends[:-1])
    return Reached(ends[found.rows], target, *found[3:])


def traced(links: Links, strengths: Strengths, shape: Shape, neurons: int) -> Traced:
    """Return the links of rows that lead to so many neurons; DamagedError if they are none."""
    ends = _ends(links.steps, shape)
    rows = np.zeros(len(links.links) + 1, np.int64)
    links.links.cumsum(out=rows[1:])
    check(rows[-1] == len(links.skips) == len(ends) - 1, "rows, targets and steps of other links")
    target = _targets(links, rows, neurons)
    place = np.tile(np.arange(shape.places, dtype=shape.dtype), _STATES).take(links.steps)
    _check_order(place, links.steps < shape.places)
    strength = _strength(links.steps, place, strengths, shape.places)
    branch, segment = np.divmod(np.arange(shape.places), shape.segments)
    branch, segment = branch.astype(np.uint8), segment.astype(np.uint8)
    return Traced(rows, ends, target, branch.take(place), segment.take(place), strength)


def _ends(steps: Places, shape: Shape) -> Ints:
    """Return where each link's connections start, and the end of the last."""
    check(steps.max(initial=0) < _STATES * shape.places, "a step of no kind")
    (new,) = (steps < shape.places).nonzero()
    check(not len(steps) or (len(new) > 0 and new[0] == 0), "a connection of no link")
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
    """Return where each link leads; so many 32-bit numbers cannot add up to 63 bits."""
    far = np.full(len(links.skips) + 1, -1)
    links.skips.cumsum(out=far[1:])
    far[1:] += np.arange(len(links.skips))
    target: Ints = far[1:] - (far[rows[:-1]] + 1).repeat(links.links)
    check(target.max(initial=-1) < neurons, "a target that is no neuron")
    return target


def _check_order(place: Places, new: Flags) -> None:
    check(((place[1:] > place[:-1]) | new[1:]).all(), "places of a link that do not ascend")


def _strength(steps: Places, place: Places, strengths: Strengths, places: int) -> Ints:
    told = (steps < places) | (steps >= 2 * places)
    (at,) = told.nonzero()
    values = restored(strengths, place[at])
    ends = np.append(at[1:], len(steps))
    return values.repeat(ends - at)
