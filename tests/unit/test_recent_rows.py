"""Rows that stay in memory after they were read."""

import gc
import weakref

import pytest
from msgspec.structs import replace

from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import Answer, DeltaRows, Name, Neuron, Question, Row
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.brain import Brain
from giaann_p2p.solo.recent_rows import RecentRows
from giaann_p2p.store.memory import columns
from tests.helpers import SMALL, built, row_of

TEXT = "Bees make honey from the nectar that they collect from flowers in the summer."
ROWS = DeltaRows(learn(built("a/ b/ c/ bee/N the/ of/ red/ hill/N"), SMALL))
A, B, C = (Name("bee", word) for word in "abc")


class Holder:
    """Makes each row anew, and sees which are still there."""

    def __init__(self) -> None:
        self.made: list[weakref.ref[Row]] = []

    def read(self, question: Question) -> Answer:
        if question.frequent:
            return [replace(row_of(ROWS, A), count=7)]
        rows = [replace(row_of(ROWS, ROWS_BY_NEURON[one])) for one in question.neurons]
        self.made += map(weakref.ref, rows)
        return list(rows)

    @property
    def alive(self) -> list[bool]:
        gc.collect()
        return [one() is not None for one in self.made]


ROWS_BY_NEURON = {name.neuron: name for name in (A, B, C)}


def size(*names: Name) -> int:
    return sum(16 + len(row_of(ROWS, name).target) for name in names)


def ask(*names: Name, names_only: bool = False) -> Question:
    return Question([name.neuron for name in names], names_only)


def test_the_rows_read_last_stay_as_far_as_there_is_room() -> None:
    holder = Holder()
    recent = RecentRows(holder, most=size(A, B, C) - 1)
    assert [row.neuron for row in recent.read(ask(A, B)) if row] == [A.neuron, B.neuron]
    recent.read(ask(A))
    assert holder.alive == [False, True, True]  # a newer one for A
    recent.read(ask(C))
    assert holder.alive == [False, False, True, True]  # B was read before A
    assert repr(recent) == f"<RecentRows: 2 rows, {size(A, C):,} connections>"


def test_a_row_above_the_limit_does_not_stay() -> None:
    holder = Holder()
    recent = RecentRows(holder, most=size(A) - 1)
    recent.read(ask(A))
    assert holder.alive == [False]
    assert repr(recent) == "<RecentRows: 0 rows, 0 connections>"


def test_rows_without_their_connections_do_not_stay() -> None:
    holder = Holder()
    recent = RecentRows(holder)
    recent.read(ask(A))
    recent.read(ask(B, names_only=True))
    recent.read(Question((), frequent=1))
    assert holder.alive == [True, False]


def test_a_brain_does_not_assemble_rows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assembled: list[Neuron] = []
    whole = columns.row_of

    def row_of_store(neuron: Neuron, *rest: object) -> Row:
        assembled.append(neuron)
        return whole(neuron, *rest)

    monkeypatch.setattr(columns, "row_of", row_of_store)
    with Brain(ModelSpec()) as brain:
        brain.train(TEXT)
        first = brain.generate("Bees make honey from", max_tokens=9)
        brain.evaluate(TEXT)
        assert len(set(assembled)) == len(assembled) > 9
        assert brain.generate("Bees make honey from", max_tokens=9).text == first.text
        assert len(set(assembled)) == len(assembled)
