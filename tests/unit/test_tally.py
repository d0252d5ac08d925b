"""The running total: equal to the sum, and cheap however many deltas come."""

import pytest

from giaann_p2p.model import tally as tally_module
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.learn import learn
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.tally import Tally
from tests.helpers import assert_same


@pytest.fixture(scope="module")
def deltas(wiki: Sequences, spec: ModelSpec) -> list[Delta]:
    return [learn(sequence, spec) for sequence in wiki]


def test_a_new_tally_is_empty() -> None:
    assert_same(Tally().total(), EMPTY)


def test_the_total_is_the_sum(deltas: list[Delta], wiki_delta: Delta) -> None:
    tally = Tally()
    for delta in deltas:
        tally = tally.plus(delta)
    assert_same(tally.total(), wiki_delta)
    assert_same(tally.total(), wiki_delta)


def test_a_tally_goes_on_after_a_total_and_from_a_start(deltas: list[Delta]) -> None:
    tally = Tally(deltas[0])
    tally = tally.plus(deltas[1])
    assert_same(tally.total(), total(deltas[:2]))
    tally = tally.plus(deltas[2])
    tally = tally.plus(EMPTY)
    assert_same(tally.total(), total(deltas[:3]))


def test_each_connection_is_added_up_few_times(
    deltas: list[Delta], monkeypatch: pytest.MonkeyPatch
) -> None:
    summed = 0

    def counted(parts: list[Delta]) -> Delta:
        nonlocal summed
        summed += sum(part.connections for part in parts)
        return total(parts)

    monkeypatch.setattr(tally_module, "total", counted)
    tally = Tally()
    for delta in deltas:
        tally = tally.plus(delta)
    tally.total()
    given = sum(delta.connections for delta in deltas)
    assert summed < 8 * given  # log2(139) is 7; one by one would be some 70
