"""Learning: one sequence adds to the strengths of connections (MODEL.md, sections 1 and 3).

Strengths are whole numbers of 2^-16 units, so that sums come out the same in any order. Nothing
here looks at what was learned before, so the memory depends only on which sequences were learned
and how often each was.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .sequence import Neuron, Position

UNITS_PER_STRENGTH = 2**16


@dataclass(frozen=True)
class Shape:
    """The sizes that everybody who shares a memory must agree on."""

    seed_tokens: int = 12
    branches: int = 2

    @property
    def column_segments(self) -> int:
        """Segments 0 ... by column distance; the last of them is the same column."""
        return self.seed_tokens // 4 + 1

    @property
    def feature_segments(self) -> int:
        """Segments by token distance, numbered on; the last of them is the adjacent token."""
        return (self.seed_tokens + 1) // 2 + 1

    @property
    def segments(self) -> int:
        return self.column_segments + self.feature_segments


class Connection(NamedTuple):
    """From one neuron to one segment of one dendritic branch of another."""

    source: Neuron
    target: Neuron
    branch: int
    segment: int


class Outgoing(NamedTuple):
    """A connection as its source sees it; ``strength`` is in units."""

    target: Neuron
    branch: int
    segment: int
    strength: int


@dataclass
class Memory:
    """All that was learned."""

    occurrences: dict[Neuron, int] = field(default_factory=dict)
    connections: dict[Connection, int] = field(default_factory=dict)
    # How many increments each strength is the sum of: each of them was rounded once.
    increments: dict[Connection, int] = field(default_factory=dict)
    # Neurons that were some sequence's last.
    endings: set[Neuron] = field(default_factory=set)
    # An index, so that a row is found without a walk over every connection there is.
    by_source: dict[Neuron, list[Connection]] = field(default_factory=dict, repr=False)

    def row(self, neuron: Neuron) -> list[Outgoing]:
        """Every connection that leaves this neuron."""
        return [
            Outgoing(key.target, key.branch, key.segment, self.connections[key])
            for key in self.by_source.get(neuron, [])
        ]

    def strengthen(self, key: Connection, units: int) -> None:
        if key not in self.connections:
            self.connections[key] = 0
            self.increments[key] = 0
            self.by_source.setdefault(key.source, []).append(key)
        self.connections[key] += units
        self.increments[key] += 1


def learn(memory: Memory, positions: Sequence[Position], shape: Shape) -> None:
    """Add one sequence: every ordered pair of its positions is connected."""
    for position in positions:
        memory.occurrences[position.neuron] = memory.occurrences.get(position.neuron, 0) + 1
    if positions:
        memory.endings.add(positions[-1].neuron)
    branches = branches_of(positions, shape)
    for later, target in enumerate(positions):
        for earlier, source in enumerate(positions[:later]):
            distance = later - earlier
            columns_apart = target.column - source.column
            for segment in segments_of(distance, columns_apart, shape):
                key = Connection(source.neuron, target.neuron, branches[later], segment)
                memory.strengthen(key, increment(distance))


def branches_of(positions: Sequence[Position], shape: Shape) -> list[int]:
    """The branch each position is learned on: a neuron's repeats get branches of their own.

    The last branch takes all the repeats there is no branch left for.
    """
    seen: Counter[Neuron] = Counter()
    branches = []
    for position in positions:
        branches.append(min(seen[position.neuron], shape.branches - 1))
        seen[position.neuron] += 1
    return branches


def segments_of(distance: int, columns_apart: int, shape: Shape) -> list[int]:
    """Where a connection ends: always by its token distance, and by its column distance if near."""
    nearness = shape.feature_segments - min(distance, shape.feature_segments)
    segments = [shape.column_segments + nearness]
    if columns_apart < shape.column_segments:
        segments.append(shape.column_segments - 1 - columns_apart)
    return segments


def increment(distance: int) -> int:
    """10 / (distance + 1), in units, rounded to the nearest one."""
    return round(10 * UNITS_PER_STRENGTH / (distance + 1))
