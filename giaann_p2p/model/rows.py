"""Rows: the interface between learned knowledge and prediction.

A row is one neuron with its outgoing connections. A holder of rows (a delta in memory, a store, a
swarm) answers questions through `Rows.read`. Prediction itself performs no reads: it is written as
generators (`Steps`) that yield questions and are sent the answers, so that the same code runs over
memory (`run`, below) and over a network. Computations that several predictions can do together are
yielded as well, as `Work`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence, Set
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from giaann_p2p.errors import GiaannError
from giaann_p2p.model.delta import Bytes, Delta, first_of_runs
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.neurons import Neurons
from giaann_p2p.model.sequence import Ids, Ints


class Neuron(NamedTuple):
    """A neuron as two numbers: its column's concept and its feature, PRIME for the noun itself."""

    concept: int
    feature: int


class Name(NamedTuple):
    """A neuron's text; the feature of a prime neuron is None."""

    concept: str
    feature: str | None

    @property
    def word(self) -> str:
        """The word that the neuron stands for."""
        return self.concept if self.feature is None else self.feature

    @property
    def neuron(self) -> Neuron:
        """The neuron that has this name."""
        return Neuron(
            word_id(self.concept), PRIME if self.feature is None else word_id(self.feature)
        )


class Numbers(NamedTuple):
    """A row's neurons by the numbers that the holder of the row has given them."""

    source: Neurons
    own: int
    """The number of the row's own neuron."""
    target: Ints
    """Shape [k]: the number of each target."""


class Row(msgspec.Struct, frozen=True, eq=False, weakref=True):
    """A neuron, its k targets in any order, and its m connections to them.

    Nothing may depend on the order of targets: it differs between holders of rows. An answer has
    thousands of rows, and a struct is created in an eighth of the time of a frozen dataclass.
    """

    neuron: Neuron
    name: Name
    count: int
    target_concept: Ids
    """Shape [k]: the concept of each target."""
    target_feature: Ids
    """Shape [k]: the feature of each target."""
    target: Ints
    """Shape [m]: the index of each connection's target, ascending: 0, ..., 0, 1, ..."""
    branch: Bytes
    """Shape [m]: the branch of each connection at its target."""
    segment: Bytes
    """Shape [m]: the segment of each connection at its target."""
    strength: Ints
    """Shape [m]: the strength of each connection, in units of 2^-16."""
    numbers: Numbers | None = None
    """The same neurons as numbers, if the holder is on this machine."""

    def same(self, other: "Row") -> bool:
        """Return whether both rows have the same content, in the same order."""
        if self is other:
            return True
        return self.count == other.count and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _CONTENT
        )


_CONTENT = ("strength", "target", "branch", "segment", "target_concept", "target_feature")


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
    """A request for the rows of some neurons; with `names_only`, only their names are needed.

    With `frequent`, it asks for that many of the most frequent nouns instead: see `noun_rows`.
    """

    neurons: Sequence[Neuron]
    names_only: bool = False
    frequent: int = 0


def noun_rows(nouns: Iterable[tuple[str, int]], most: int) -> "list[Row | None]":
    """Return the most frequent of some nouns, given with their counts, the most frequent first.

    The rows have no connections. Nouns that occur equally often are in the order of their names.
    """
    best = nsmallest(most, nouns, key=lambda noun: (-noun[1], noun[0]))
    names = [(Name(name, None), count) for name, count in best]
    return [replace(empty_row(name.neuron, name), count=count) for name, count in names]


class Work(ABC):
    """A computation that is done faster together with others of its kind."""

    @property
    @abstractmethod
    def connections(self) -> int:
        """The number of connections to process."""

    @abstractmethod
    def together(self, others: Sequence["Work"]) -> None:
        """Do this work together with the others."""


T = TypeVar("T")
Answer = list[Row | None]
Request = Question | Sequence[Work]
"""A request of steps: for rows, or for work to be done, which is answered by an empty list."""
Steps = Generator[Request, Answer, T]


class Rows(Protocol):
    """A holder of rows."""

    def read(self, question: Question) -> Answer:
        """Return the neurons' rows, in order; None for a neuron that never occurred.

        With `frequent`, return the most frequent nouns instead.
        """
        ...


class End(NamedTuple, Generic[T]):
    """The end of steps, with their result."""

    result: T


def advanced(steps: Steps[T], answer: Answer | None) -> Request | End[T]:
    """Resume steps with an answer, None at first; return their next request, or their end."""
    try:
        return next(steps) if answer is None else steps.send(answer)
    except StopIteration as done:
        return End(done.value)


class Abandoned(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """The result of some steps is no longer wanted."""


def never() -> bool:
    """Return False: never stop."""
    return False


def run(steps: Steps[T], rows: Rows, should_stop: Callable[[], bool] = never) -> T:
    """Run steps to their end, with rows that can be read at once; return their result.

    `should_stop` is called before each request is fulfilled; if it returns true, Abandoned is
    raised.
    """
    at = advanced(steps, None)
    while not isinstance(at, End):
        if should_stop():
            raise Abandoned("the answer is no longer wanted")
        answer: Answer = []
        if isinstance(at, Question):
            answer = rows.read(at)
        else:
            done(at)
        at = advanced(steps, answer)
    result: T = at.result
    return result


def done(works: Sequence[Work]) -> None:
    """Do all the work together."""
    if works:
        works[0].together(works[1:])


def abreast(all_steps: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Run several steps side by side: they work together, and ask for rows together.

    While any of them has work to do, the others hold their questions back, so that more of these
    are asked as one.
    """
    results: dict[int, T] = {}
    due = {n: advanced(steps, None) for n, steps in enumerate(all_steps)}
    while due:
        results |= {n: at.result for n, at in due.items() if isinstance(at, End)}
        asked = {n: at for n, at in due.items() if isinstance(at, Question)}
        works = {n: at for n, at in due.items() if not isinstance(at, (Question, End))}
        if works:
            yield [work for some in works.values() for work in some]
            answers: dict[int, Answer] = {n: [] for n in works}
        else:
            answers = yield from _answers(asked)
        waiting = {n: at for n, at in asked.items() if n not in answers}
        due = waiting | {n: advanced(all_steps[n], answer) for n, answer in answers.items()}
    return [results[n] for n in range(len(all_steps))]


def _answers(asked: dict[int, Question]) -> Generator[Request, Answer, dict[int, Answer]]:
    """Ask all questions for whole rows in one; if there are none, do so with those for names."""
    names_only = all(question.names_only for question in asked.values())
    asked = {n: question for n, question in asked.items() if question.names_only == names_only}
    if not asked:
        return {}
    neurons = [neuron for question in asked.values() for neuron in question.neurons]
    rows = iter((yield Question(neurons, names_only)))
    return {n: list(islice(rows, len(question.neurons))) for n, question in asked.items()}


class DeltaRows:
    """The rows of a delta; a neuron that never occurred and leads nowhere has none."""

    def __init__(self, delta: Delta) -> None:
        self._delta = delta
        occurs = np.flatnonzero((delta.count > 0) | (delta.lengths > 0))
        named = zip(delta.concept[occurs].tolist(), delta.feature[occurs].tolist(), strict=True)
        self._at: dict[tuple[int, int], int] = dict(zip(named, occurs.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self._at)

    @property
    def neurons(self) -> Set[tuple[int, int]]:
        """The neurons that have rows."""
        return self._at.keys()

    def read(self, question: Question) -> Answer:
        """Return the rows asked for."""
        if question.frequent:
            return noun_rows(self._nouns(), question.frequent)
        if question.names_only:
            return [self._name_of(neuron) for neuron in question.neurons]
        return [self._read(neuron) for neuron in question.neurons]

    def _nouns(self) -> Iterator[tuple[str, int]]:
        """Return the nouns that occurred, with their counts."""
        names, count = self._delta.names, self._delta.count
        for (concept, feature), at in self._at.items():
            if feature == PRIME and count[at]:
                yield names[concept], int(count[at])

    def _name(self, neuron: Neuron) -> Name:
        names = self._delta.names
        feature = None if neuron.feature == PRIME else names[neuron.feature]
        return Name(names[neuron.concept], feature)

    def _name_of(self, neuron: Neuron) -> Row | None:
        return empty_row(neuron, self._name(neuron)) if neuron in self._at else None

    def _read(self, neuron: Neuron) -> Row | None:
        at = self._at.get(neuron)
        if at is None:
            return None
        delta, links = self._delta, self._links
        start, end = links.rows[at], links.rows[at + 1]
        first, last = links.first[at], links.first[at + 1]
        return Row(
            neuron,
            self._name(neuron),
            links.counts[at],
            links.concept[first:last],
            links.feature[first:last],
            links.number[start:end] - first,
            delta.branch[start:end],
            delta.segment[start:end],
            delta.strength[start:end],
        )

    @cached_property
    def _links(self) -> "_Links":
        delta = self._delta
        new = first_of_runs(delta.target)
        new[delta.row_starts[:-1][delta.lengths > 0]] = True
        number = np.cumsum(new)
        first = np.concatenate([[0], number])[delta.row_starts]
        target = delta.target[new]
        return _Links(
            delta.row_starts.tolist(),
            first.tolist(),
            delta.count.tolist(),
            number - 1,
            delta.concept[target],
            delta.feature[target],
        )


class _Links(NamedTuple):
    """The pairs of neurons that a delta connects, row by row."""

    rows: list[int]
    """Shape [V + 1]: where each row's connections start, and the end of the last."""
    first: list[int]
    """Shape [V + 1]: where each row's pairs start, and the end of the last."""
    counts: list[int]
    """Shape [V]: how often each row's neuron occurred."""
    number: Ints
    """Shape [M]: the index of each connection's pair."""
    concept: Ids
    """Shape [K]: the concept of each pair's target."""
    feature: Ids
    """Shape [K]: the feature of each pair's target."""
