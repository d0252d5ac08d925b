"""Rows: all that prediction sees of what was learned.

A row is one neuron with its outgoing connections. Whoever holds rows (a delta in memory, a store, a
swarm) answers one question, `Rows.read`. Prediction itself reads nothing: it is written as
generators (`Steps`) that yield questions and are sent the answers, so that the same code runs over
memory (`run`, below) and over a network.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from giaann_p2p.model.delta import Bytes, Delta, first_of_runs
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.sequence import Ids, Ints


class Neuron(NamedTuple):
    """A neuron's number: its column's concept and its feature, PRIME for the concept's own noun."""

    concept: int
    feature: int


class Name(NamedTuple):
    """A neuron's text; the feature of a prime neuron is None."""

    concept: str
    feature: str | None

    @property
    def word(self) -> str:
        """What the neuron says."""
        return self.concept if self.feature is None else self.feature

    @property
    def neuron(self) -> Neuron:
        """The neuron that has this name."""
        return Neuron(
            word_id(self.concept), PRIME if self.feature is None else word_id(self.feature)
        )


@dataclass(frozen=True, eq=False)
class Row:
    """A neuron, its k targets in whatever order, and its m connections to them.

    Nothing may depend on the order: whoever holds rows has one of their own.
    """

    neuron: Neuron
    name: Name
    count: int
    target_concept: Ids
    """[k]"""
    target_feature: Ids
    """[k]"""
    target: Ints
    """[m] index of the target, ascending: 0, ..., 0, 1, ..."""
    branch: Bytes
    """[m]"""
    segment: Bytes
    """[m]"""
    strength: Ints
    """[m] in units of 2^-16."""


def empty_row(neuron: Neuron, name: Name) -> Row:
    """Return the row of a neuron that never occurred."""
    return Row(
        neuron,
        name,
        0,
        np.empty(0, np.uint64),
        np.empty(0, np.uint64),
        np.empty(0, np.int64),
        np.empty(0, np.uint8),
        np.empty(0, np.uint8),
        np.empty(0, np.int64),
    )


class Question(NamedTuple):
    """Which rows are wanted; with `names_only` any row will do that has the right name."""

    neurons: Sequence[Neuron]
    names_only: bool = False


T = TypeVar("T")
Answer = list[Row | None]
Steps = Generator[Question, Answer, T]


class Rows(Protocol):
    """Something that holds rows."""

    def read(self, question: Question) -> Answer:
        """Return the neurons' rows, in their order; None for one that never occurred."""
        ...


def run(steps: Steps[T], rows: Rows) -> T:
    """Carry steps through with rows that are at hand."""
    try:
        question = next(steps)
        while True:
            question = steps.send(rows.read(question))
    except StopIteration as done:
        result: T = done.value
        return result


class DeltaRows:
    """The rows of a delta; a neuron that never occurred in it is only a target."""

    def __init__(self, delta: Delta) -> None:
        self._delta = delta

    def read(self, question: Question) -> Answer:
        """Return the rows asked for."""
        return [self._read(neuron, question.names_only) for neuron in question.neurons]

    def _read(self, neuron: Neuron, name_only: bool) -> Row | None:
        delta = self._delta
        at = delta.find(*neuron)
        if at is None or not delta.count[at]:
            return None
        feature = None if neuron.feature == PRIME else delta.names[neuron.feature]
        name = Name(delta.names[neuron.concept], feature)
        if name_only:
            return empty_row(neuron, name)
        held = slice(int(delta.row_starts[at]), int(delta.row_starts[at + 1]))
        target = delta.target[held]
        first = first_of_runs(target)
        targets = target[first]
        return Row(
            neuron,
            name,
            int(delta.count[at]),
            delta.concept[targets],
            delta.feature[targets],
            np.cumsum(first) - 1,
            delta.branch[held],
            delta.segment[held],
            delta.strength[held],
        )
