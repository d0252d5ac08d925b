"""Chooses the next neuron of an answer, with its score: greedily, or by beam search.

All code here that needs rows is `Steps` (see `rows`): it yields a question and continues with the
answer, wherever that comes from.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
import torch

from giaann_p2p.model.activation import Activation, Candidates
from giaann_p2p.model.board import Board
from giaann_p2p.model.manner import AUTO, Beam, Timing, Variant
from giaann_p2p.model.rows import Name, Neuron, Question, Row, Steps
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


class Taken(NamedTuple):
    """A neuron that was chosen and heard."""

    name: Name
    choice: Choice


class Mind:
    """The activation after a prompt, under one timing or, with `auto`, under several.

    The states of the later timings of `auto` are brought up to date only when they are needed.
    """

    def __init__(
        self,
        spec: ModelSpec,
        timings: Sequence[Timing] = AUTO,
        variant: Variant | None = None,
        device: torch.device | None = None,
    ) -> None:
        self.board = Board(spec, variant or Variant(), device or torch.device("cpu"))
        self._states = _states_on(self.board, timings)
        self._heard: list[Row] = []
        self._remembered: Candidates | None = None  # the candidates of `exact`, once computed
        self._by_heart = False  # whether `exact` expected the word heard last

    def copy(self) -> "Mind":
        """Return a mind that continues from here independently.

        Both minds share the same states. A state is rewound to what a mind heard when that mind
        uses it: a state has millions of numbers, and undoing one step touches some thousands.
        """
        for state in self._states.values():
            state.branch()
        other = copy(self)
        other._heard = list(self._heard)
        return other

    def forget(self) -> None:
        """Reset for another prompt; wired rows are kept until the board is full."""
        self._heard = []
        self._remembered, self._by_heart = None, False
        board = self.board
        if board.full:
            self.board = Board(board.spec, board.variant, board.device)
        for state in self._states.values():
            state.forget(self.board)

    def __len__(self) -> int:
        """Return the number of tokens heard."""
        return len(self._heard)

    def hear(self, row: Row) -> None:
        """Hear the next token: of the prompt, or a chosen one."""
        expected = self._remembered
        self._by_heart = expected is not None and place_of(row.neuron, expected) is not None
        self._remembered = None
        self._heard.append(row)

    def states(self) -> Iterable[Activation]:
        """Yield the states, the strictest first, each brought up to date when it is yielded.

        A state stays up to date until a copy of this mind uses it.
        """
        for state in self._states.values():
            state.follow(self._heard)
            yield state

    def candidates(self) -> tuple[Timing, Candidates] | None:
        """Return the candidates of the first timing that has any; None if no timing has.

        After the end of a sentence only `exact` is asked: the other timings would continue in the
        middle of other sentences, and a short answer is better than a rambling one.
        """
        if not self._heard:
            return None
        for state in self.states():
            exact = state.timing is Timing.EXACT
            if not exact and len(self._states) > 1 and self._ended():
                return None
            found = state.candidates()
            if exact:
                self._remembered = found
            if len(found):
                return state.timing, found
        return None

    def foreseen(self, most: int) -> list[Neuron]:
        """Return neurons whose rows may be needed soon, according to the strictest timing.

        The state of that timing is not brought up to date for this.
        """
        return next(iter(self._states.values())).foreseen(most)

    def _ended(self) -> bool:
        """Return whether the word heard last ends a sentence.

        Besides `.`, `?` and `!`, this is any word that `exact` expected, and after which it expects
        none, if the word has ever ended a learned sentence. For example, few sentences end with a
        comma; but if one did, and `exact` followed it up to there, that is its end.
        """
        last = self._heard[-1]
        return last.name.word in _SENTENCE_ENDS or (
            self._by_heart and _ended_with(last, self.board.spec)
        )


def place_of(neuron: Neuron, candidates: Candidates) -> int | None:
    """Return the position of a neuron among candidates; None if it is not one."""
    row, index = candidates.wiring.row, candidates.index
    same = (row.target_concept[index] == np.uint64(neuron.concept)) & (
        row.target_feature[index] == np.uint64(neuron.feature)
    )
    at = np.flatnonzero(same)
    return int(at[0]) if len(at) else None


def _ended_with(row: Row, spec: ModelSpec) -> bool:
    """Return whether some learned sentence ended with a neuron.

    If so, it occurred more often than it was followed by another neuron. Each time it was followed,
    a connection to the adjacent neuron gained the same amount, `increment(1)`.
    """
    followed = int(row.strength[row.segment == spec.segments - 1].sum())
    return row.count * increment(1) > followed


def _states_on(board: Board, timings: Sequence[Timing]) -> dict[Timing, Activation]:
    return {timing: Activation(board, timing) for timing in timings}


def read(mind: Mind, neurons: Sequence[Neuron]) -> Steps[list[Row | None]]:
    """Return rows; the question has only those that the mind has not wired yet."""
    found = {neuron: mind.board.row(neuron) for neuron in neurons}
    missing = [neuron for neuron, row in found.items() if row is None]
    if missing:
        rows = yield Question(missing)
        for neuron, row in zip(missing, rows, strict=True):
            found[neuron] = row and mind.board.wire(row).row
    return [found[neuron] for neuron in neurons]


def next_token(mind: Mind, beam: Beam | None = None) -> Steps[Taken | None]:
    """Choose the next token and hear it; None if there is no candidate."""
    choice = best(mind) if beam is None else (yield from look_ahead(mind, beam))
    if choice is None:
        return None
    (row,) = yield from read(mind, [choice.neuron])
    if row is None:
        return None  # the target has no row: its column was lost
    mind.hear(row)
    return Taken(row.name, choice)


def best(mind: Mind) -> Choice | None:
    """Return the best candidate; None if there is none."""
    return next(iter(_best(mind, 1)), None)


def look_ahead(mind: Mind, beam: Beam) -> Steps[Choice | None]:
    """Return the first step of the best path that a beam search finds."""
    ways = [_Way(mind, None, None, 0)]
    for _ in range(beam.depth):
        longer = [step for way in ways for step in _steps(way, beam.width)]
        longer.sort(key=lambda way: -way.total)  # stable: ties keep the order of their paths
        ways = yield from _taken(longer[: beam.width])
    return ways[0].first


class _Way(NamedTuple):
    """A path of the beam: its mind, its first step, its next step, and the sum of its scores."""

    mind: Mind
    first: Choice | None
    step: Choice | None
    total: int


def _steps(way: _Way, width: int) -> list[_Way]:
    """Return the paths that are one step longer; a path that has ended is returned unchanged."""
    return [
        _Way(way.mind, way.first or choice, choice, way.total + choice.score)
        for choice in _best(way.mind, width)
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


def _best(mind: Mind, most: int) -> list[Choice]:
    found = mind.candidates()
    if found is None:
        return []
    timing, candidates = found
    return [
        Choice(candidates.neuron(at), timing, int(candidates.score[at]), len(candidates))
        for at in candidates.ranked(most).tolist()
    ]
