"""Rows: what prediction sees of a delta, and steps that ask for them."""

import pytest

from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import DeltaRows, Name, Neuron, Question, Row, Steps, empty_row, run
from giaann_p2p.model.spec import increment
from tests.helpers import SMALL, built

BEE, THE, HILL = Name("bee", None), Name("bee", "the"), Name("hill", None)


@pytest.fixture(scope="module")
def delta() -> Delta:
    return learn(built("the/ bee/N of/ the/ hill/N"), SMALL)


def read(delta: Delta, name: Name, names_only: bool = False) -> Row | None:
    (row,) = DeltaRows(delta).read(Question([name.neuron], names_only))
    return row


def test_a_name_says_its_feature_or_its_concept() -> None:
    assert (BEE.word, THE.word) == ("bee", "the")
    assert BEE.neuron.feature == 0
    assert BEE.neuron.concept == THE.neuron.concept
    assert THE.neuron == Neuron(*THE.neuron)
    assert Name("bee", "").neuron != BEE.neuron
    assert Name("bee", "").word == ""


def test_a_row_is_its_neurons_part_of_the_delta(delta: Delta) -> None:
    row = read(delta, BEE)
    assert row is not None
    assert (row.neuron, row.name, row.count) == (BEE.neuron, BEE, 1)
    targets = list(zip(row.target_concept.tolist(), row.target_feature.tolist(), strict=True))
    names = [Name("bee", "of"), HILL, Name("hill", "the")]
    assert targets == sorted(tuple(name.neuron) for name in names)
    found = {
        (targets[target], segment): strength
        for target, branch, segment, strength in zip(
            *(a.tolist() for a in (row.target, row.branch, row.segment, row.strength)), strict=True
        )
        if branch == 0
    }
    of, hill, the = (tuple(name.neuron) for name in names)
    assert found == {
        (of, 1): increment(1),
        (of, 4): increment(1),
        (the, 0): increment(2),
        (the, 3): increment(2),
        (hill, 0): increment(3),
        (hill, 2): increment(3),
    }
    assert row.target.tolist() == sorted(row.target.tolist())


def test_the_last_word_has_a_row_without_connections(delta: Delta) -> None:
    row = read(delta, HILL)
    assert row is not None
    assert row.count == 1
    assert len(row.target) == len(row.target_concept) == 0


def test_rows_come_in_the_order_asked_for(delta: Delta) -> None:
    unknown = Name("wasp", None)
    asked = [HILL, unknown, THE, BEE, HILL]
    rows = DeltaRows(delta).read(Question([name.neuron for name in asked]))
    assert [row and row.name for row in rows] == [HILL, None, THE, BEE, HILL]
    assert DeltaRows(delta).read(Question([])) == []
    assert DeltaRows(EMPTY).read(Question([BEE.neuron])) == [None]


def test_names_only_needs_the_name_only(delta: Delta) -> None:
    row = read(delta, THE, names_only=True)
    assert row is not None
    assert row.name == THE
    assert read(delta, Name("hill", "of"), names_only=True) is None


def test_an_empty_row_leads_nowhere() -> None:
    row = empty_row(BEE.neuron, BEE)
    assert (row.name, row.count, len(row.target), len(row.target_concept)) == (BEE, 0, 0, 0)


def test_a_row_is_never_changed_and_equals_only_itself() -> None:
    row, other = (empty_row(BEE.neuron, BEE) for _ in range(2))
    with pytest.raises(AttributeError):
        row.count = 1  # type: ignore[misc]
    assert len({row, other}) == 2
    assert (row.count, row == other, row.same(other)) == (0, False, True)


def test_steps_are_carried_through_with_answers(delta: Delta) -> None:
    def steps() -> Steps[list[str]]:
        (one,) = yield Question([BEE.neuron])
        none, two = yield Question([Neuron(1, 2), THE.neuron], names_only=True)
        assert one is not None
        assert two is not None
        assert none is None
        return [one.name.word, two.name.word]

    assert run(steps(), DeltaRows(delta)) == ["bee", "the"]


def test_steps_without_a_question() -> None:
    def steps(count: int) -> Steps[int]:
        for _ in range(count):
            yield Question([])
        return 7

    assert run(steps(0), DeltaRows(EMPTY)) == run(steps(3), DeltaRows(EMPTY)) == 7
