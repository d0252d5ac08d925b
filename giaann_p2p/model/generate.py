"""Chooses the next neuron of an answer, with its score: greedily, or by beam search.

All code here that needs rows is `Steps` (see `rows`): it yields a question and continues with the
answer, wherever that comes from.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.activation import Activation, Batch, Heard
from giaann_p2p.model.board import CONNECTION_BYTES
from giaann_p2p.model.candidates import Candidates
from giaann_p2p.model.manner import AUTO, Beam, Timing, Variant
from giaann_p2p.model.rows import Name, Neuron, Question, Row, Steps, abreast
from giaann_p2p.model.sequence import Ids
from giaann_p2p.model.spec import ModelSpec, increment

_SENTENCE_ENDS = frozenset(".?!")


class Choice(NamedTuple):
    """A choice of the next neuron, with its timing and score."""

    neuron: Neuron
    timing: Timing
    score: int
    """The score of the neuron, in units of ONE."""
    candidates: int
    """The number of candidates that the neuron was chosen from."""
    probability: float
    """This neuron's share of all times that a candidate followed the word heard last. Only the
    score decides which neuron is chosen."""


class Taken(NamedTuple):
    """A neuron that was chosen and heard."""

    name: Name
    choice: Choice


class Mind:
    """What was heard of a prompt, under one timing or, with `auto`, under several.

    The state of a timing is brought up to date only when it is needed.
    """

    def __init__(
        self, batch: Batch, timings: Sequence[Timing] = AUTO, variant: Variant | None = None
    ) -> None:
        self.prefetches = False
        """Whether the next candidates come with guesses for `foreseen`."""
        self._batch, self._timings, self._variant = batch, timings, variant or Variant()
        self._known: dict[Neuron, Row] = {}
        """The rows read so far; during an answer, a row does not change."""
        self._connections = 0  # of all known rows
        self._remembered: Candidates | None = None  # the candidates of `exact`, once computed
        self._expected: Candidates | None = None  # the same, before the word heard last
        self._begin(Heard(batch.board(self._variant)))

    def copy(self) -> "Mind":
        """Return a mind that continues from here independently.

        The numbers of its states are copied when they are first needed.
        """
        other = copy(self)
        other._begin(self._heard.copy())
        for state, mine in zip(other._states, self._states, strict=True):
            state.origin = mine.here
        return other

    def forget(self) -> None:
        """Give the memory of the states back; then another prompt can be heard.

        Known rows are kept until the board is full.
        """
        board = self._batch.board(self._variant)
        if board is not self._heard.board:
            self._known, self._connections = {}, 0
        self._remembered = self._expected = None
        self._begin(Heard(board))

    def __len__(self) -> int:
        """Return the number of tokens heard."""
        return len(self._heard.rows)

    @property
    def nbytes(self) -> int:
        """The approximate size in memory, in bytes, with its part of a shared board."""
        lanes = sum(map(self._batch.bytes_of, self._states))
        return self._connections * CONNECTION_BYTES + lanes

    def known(self, neuron: Neuron) -> Row | None:
        """Return a row that was read before; None if it was not."""
        return self._known.get(neuron)

    def latest(self, most: int) -> list[Row]:
        """Return the rows of the tokens heard last, the last one first."""
        return self._heard.rows[-most:][::-1]

    def know(self, row: Row) -> None:
        """Remember a row that was read."""
        self._known[row.neuron] = row
        self._connections += len(row.target)

    def hear(self, row: Row) -> None:
        """Hear the next token: of the prompt, or a chosen one."""
        self._expected, self._remembered = self._remembered, None
        self._heard.rows.append(row)
        if row.neuron not in self._known:
            self.know(row)

    def settled(self) -> Iterator[Steps[Activation]]:
        """Yield for each timing, the strictest first, steps that update and return its state."""
        return map(self._settled, self._states)

    def followers(self) -> tuple[Ids, Ids]:
        """Return the concepts and features of all neurons that ever came next after the last word.

        No timing expects any other neuron, and one without order expects all of these, in whatever
        column. A neuron may be in the result several times.
        """
        row = self._heard.rows[-1]
        adjacent = row.target[row.segment == self._batch.spec.segments - 1]
        return row.target_concept[adjacent], row.target_feature[adjacent]

    def expects(self, neuron: Neuron) -> Steps[bool]:
        """Return whether any timing expects a neuron next, even if the column rules exclude it."""
        if self.prefetches:
            yield from self._settled(self._states[0])  # for `foreseen`
        concepts, features = self.followers()
        if neuron.concept not in concepts[features == np.uint64(neuron.feature)].tolist():
            return False
        if not all(timing.ordered for timing in self._timings):
            return True
        for steps in self.settled():
            if neuron in (yield from steps).candidates(anywhere=True):
                return True
        return False

    def candidates(self) -> Steps[tuple[Timing, Candidates] | None]:
        """Return the candidates of the first timing that has any; None if no timing has.

        After the end of a sentence only `exact` is asked: the other timings would continue in the
        middle of other sentences, and a short answer is better than a rambling one.
        """
        if not len(self):
            return None
        for state in self._states:
            exact = state.timing is Timing.EXACT
            if not exact and len(self._states) > 1 and self._ended():
                return None
            yield from self._settled(state)
            found = state.candidates()
            if exact:
                self._remembered = found
            if len(found):
                return state.timing, found
        return None

    def foreseen(self, most: int) -> list[Neuron]:
        """Return neurons whose rows may be needed soon, according to the strictest timing.

        The guesses are as old as the last candidates computed with `prefetches`.
        """
        return self._states[0].foreseen(most)

    def _begin(self, heard: Heard) -> None:
        self._heard = heard
        self._states = [Activation(self._batch, heard, timing) for timing in self._timings]

    def _settled(self, state: Activation) -> Steps[Activation]:
        """Bring a state up to date; return it."""
        if not state.settled:
            state.ahead = self.prefetches and state is self._states[0]
            yield [state]
        return state

    def _ended(self) -> bool:
        """Return whether the word heard last ends a sentence.

        Besides `.`, `?` and `!`, this is any word that `exact` expected, and after which it expects
        none, if the word has ever ended a learned sentence. For example, few sentences end with a
        comma; but if one did, and `exact` followed it up to there, that is its end.
        """
        last, expected = self._heard.rows[-1], self._expected
        by_heart = expected is not None and last.neuron in expected
        return last.name.word in _SENTENCE_ENDS or (
            by_heart and _ended_with(last, self._batch.spec)
        )


def _ended_with(row: Row, spec: ModelSpec) -> bool:
    """Return whether some learned sentence ended with a neuron.

    If so, the neuron occurred more often than another one followed it. Each time one followed it,
    a connection to the adjacent neuron gained the same amount, `increment(1)`.
    """
    followed = int(row.strength[row.segment == spec.segments - 1].sum())
    return row.count * increment(1) > followed


def read(mind: Mind, neurons: Sequence[Neuron]) -> Steps[list[Row | None]]:
    """Return rows, asking only for those that the mind does not know yet."""
    found = {neuron: mind.known(neuron) for neuron in neurons}
    missing = [neuron for neuron, row in found.items() if row is None]
    if missing:
        rows = yield Question(missing)
        for neuron, row in zip(missing, rows, strict=True):
            found[neuron] = row
            if row is not None:
                mind.know(row)
    return [found[neuron] for neuron in neurons]


def next_token(mind: Mind, beam: Beam | None = None) -> Steps[Taken | None]:
    """Choose the next token and hear it; None if there is no candidate."""
    choice = yield from (best(mind) if beam is None else look_ahead(mind, beam))
    if choice is None:
        return None
    (row,) = yield from read(mind, [choice.neuron])
    if row is None:
        return None  # the target has no row: its column was lost
    mind.hear(row)
    return Taken(row.name, choice)


def best(mind: Mind) -> Steps[Choice | None]:
    """Return the best candidate; None if there is none."""
    return next(iter((yield from _best(mind, 1))), None)


def look_ahead(mind: Mind, beam: Beam) -> Steps[Choice | None]:
    """Return the first step of the best path that a beam search finds."""
    ways = [_Way(mind, None, None, 0)]
    for _ in range(beam.depth):
        found = yield from abreast([_steps(way, beam.width) for way in ways])
        longer = [step for steps in found for step in steps]
        longer.sort(key=lambda way: -way.total)  # stable: ties keep the order of their paths
        ways = yield from _taken(longer[: beam.width])
    return ways[0].first


class _Way(NamedTuple):
    """A path of the beam: its mind, its first step, its next step, and the sum of its scores."""

    mind: Mind
    first: Choice | None
    step: Choice | None
    total: int


def _steps(way: _Way, width: int) -> Steps[list[_Way]]:
    """Return the paths that are one step longer; a path that has ended is returned unchanged."""
    return [
        _Way(way.mind, way.first or choice, choice, way.total + choice.score)
        for choice in (yield from _best(way.mind, width))
    ] or [way._replace(step=None)]


def _taken(ways: list[_Way]) -> Steps[list[_Way]]:
    """Take each path's next step, on its own copy of the mind."""
    neurons = [way.step.neuron for way in ways if way.step]
    answers = iter((yield from read(ways[0].mind, neurons)))
    taken = []
    for way in ways:
        row = next(answers) if way.step else None
        mind = way.mind
        if row is not None:
            mind = mind.copy()
            mind.hear(row)
        taken.append(way._replace(mind=mind))
    return taken


def _best(mind: Mind, most: int) -> Steps[list[Choice]]:
    found = yield from mind.candidates()
    if found is None:
        return []
    timing, candidates = found
    return [
        Choice(
            candidates.neuron(at),
            timing,
            int(candidates.score[at]),
            len(candidates),
            candidates.share(at),
        )
        for at in candidates.ranked(most).tolist()
    ]
