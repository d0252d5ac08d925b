"""Mistakes of a reader, which no storage peer would notice."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.swarm.reading import reader
from tests.sim.bugs import Bug


def _answer_with(patch: pytest.MonkeyPatch, wrong: Callable[[Any, Any], Any]) -> None:
    """Let readers answer with other rows than they read."""
    right = reader._outcome

    def outcome(reading: Any) -> Any:
        found = right(reading)
        return found if found.rows is None else found._replace(rows=wrong(reading, found.rows))

    patch.setattr(reader, "_outcome", outcome)


def _mix_up_rows(patch: pytest.MonkeyPatch) -> None:
    _answer_with(patch, lambda _, rows: rows[::-1])


def _lose_rows(patch: pytest.MonkeyPatch) -> None:
    _answer_with(patch, lambda _, rows: [None] * len(rows))


def _keep_what_was_read_before(patch: pytest.MonkeyPatch) -> None:
    def old(reading: Any, rows: Any) -> Any:
        known: Mapping[Neuron, Row] = {}
        for part in reading.parts:
            known = {**known, **part.known}
        pairs = zip(reading.question.neurons, rows, strict=True)
        return [known.get(neuron, row) for neuron, row in pairs]

    _answer_with(patch, old)


def _never_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reader.Reader, "answered", lambda self, number, answer, now: [])


READING_BUGS = [
    Bug("mix up rows", _mix_up_rows),
    Bug("lose rows", _lose_rows),
    Bug("keep what was read before", _keep_what_was_read_before),
    Bug("never answer", _never_answer),
]
"""Every history finds these, as clients read all the time, and once more in the end."""
