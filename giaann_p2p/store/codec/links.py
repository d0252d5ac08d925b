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
from giaann_p2p.store.codec.strengths import Places, Strengths, numbered, restored

_STATES = 3
Flags = npt.NDArray[np.bool_]


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
    new = _first_of_links(delta)
    known = ~new
    known[1:] &= delta.strength[1:] == delta.strength[:-1]
    steps = _places(delta, shape)
    told = numbered(delta.strength[~known], steps[~known])
    steps += (known + 2 * (~new & ~known).astype(steps.dtype)) * steps.dtype.type(shape.places)
    lengths, skips = _skips(delta, np.flatnonzero(new))
    return Links(lengths, skips, steps), told


def reached(links: Links, strengths: Strengths, shape: Shape) -> Reached:
    """Return the connections of the rows; DamagedError if they are none."""
    ends = _ends(links.steps, shape)
    rows = np.zeros(len(links.links) + 1, np.int64)
    links.links.cumsum(out=rows[1:])
    check(rows[-1] == len(links.skips) == len(ends) - 1, "rows, targets and steps of other links")
    target = _targets(links, rows).repeat(ends[1:] - ends[:-1])
    place = np.tile(np.arange(shape.places, dtype=shape.dtype), _STATES).take(links.steps)
    _check_order(place, links.steps < shape.places)
    strength = _strength(links.steps, place, strengths, shape.places)
    branch, segment = np.divmod(np.arange(shape.places), shape.segments)
    branch, segment = branch.astype(np.uint8), segment.astype(np.uint8)
    return Reached(ends[rows], target, branch.take(place), segment.take(place), strength)


def _ends(steps: Places, shape: Shape) -> Ints:
    """Return where each link's connections start, and the end of the last."""
    check(steps.max(initial=0) < _STATES * shape.places, "a step of no kind")
    (new,) = (steps < shape.places).nonzero()
    check(not len(steps) or (len(new) > 0 and new[0] == 0), "a connection of no link")
    return np.append(new, len(steps))


def _first_of_links(delta: Delta) -> Flags:
    new = first_of_runs(delta.target)
    new[delta.row_starts[:-1][delta.lengths > 0]] = True
    return new


def _places(delta: Delta, shape: Shape) -> Places:
    places = delta.branch.astype(shape.dtype)
    places *= shape.dtype.type(shape.segments)
    places += delta.segment
    return places


def _skips(delta: Delta, new: Ints) -> tuple[Ints, Ints]:
    rows = np.searchsorted(new, delta.row_starts)
    lengths = rows[1:] - rows[:-1]
    target = delta.target[new]
    skips = target - 1
    skips[1:] -= target[:-1]
    first = rows[:-1][lengths > 0]
    skips[first] = target[first]
    return lengths.astype(np.uint32), skips.astype(np.uint32)


def _targets(links: Links, rows: Ints) -> Slots:
    """Return where each link leads; so many 32-bit numbers cannot add up to 63 bits."""
    far = np.full(len(links.skips) + 1, -1)
    links.skips.cumsum(out=far[1:])
    far[1:] += np.arange(len(links.skips))
    target: Ints = far[1:] - (far[rows[:-1]] + 1).repeat(links.links)
    check(target.max(initial=-1) < len(links.links), "a target that is no neuron")
    return target.astype(np.int32)


def _check_order(place: Places, new: Flags) -> None:
    check(((place[1:] > place[:-1]) | new[1:]).all(), "places of a link that do not ascend")


def _strength(steps: Places, place: Places, strengths: Strengths, places: int) -> Ints:
    told = (steps < places) | (steps >= 2 * places)
    (at,) = told.nonzero()
    values = restored(strengths, place[at])
    ends = np.append(at[1:], len(steps))
    return values.repeat(ends - at)
