"""Chunks on their way, and censuses, go on while the number of shards doubles."""

import numpy as np
import pytest
from pyroaring import BitMap

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.training.writer import Committed
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.messages import Compare, Push, Pushed, Refusal
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import JOB, LESSONS, NOW, SHARDS, A, Around, B, C, D, applied, sealed
from tests.unit.swarm.training.helpers_writer import ALL, Writing
from tests.unit.swarm.training.test_census import Counting, said, same

MORE = 4 * SHARDS
EVERY = packed(np.arange(MORE, dtype=np.uint16), MORE)


def double(around: Around, quorum: int = 2) -> None:
    around.rules = Rules(MORE, 3, quorum, founding_shards=SHARDS)
    around.changes += 1


def test_who_has_a_shard_has_its_children() -> None:
    one = Writing(A, B, C, few=1 << 30)
    one.push()
    one.answer(A, Pushed(ALL))
    double(one.around)
    one.calls.clear()
    assert one.tick(NOW + 1) == [B, C]
    one.answer(B, Pushed(EVERY), NOW + 2)
    assert one.committed == [Committed(JOB, 1)]


@pytest.mark.parametrize("answer", [Pushed(ALL), Refusal("full"), None])
def test_answers_to_pushes_before_the_doubling_do_no_harm(answer: Pushed | Refusal | None) -> None:
    one = Writing(A, B, C, few=1 << 30)
    one.push()
    before = list(one.calls)
    double(one.around)
    one.calls = []
    assert one.tick(NOW + 1) == [A, B, C]
    for call in before:
        one.do(one.writer.answered(call.number, answer, NOW + 1))
    assert one.committed == []
    assert one.tick(NOW + 1) == []
    for peer in (A, B):
        one.answer(peer, Pushed(EVERY), NOW + 2)
    assert one.committed == [Committed(JOB, 1)]


def test_an_answer_is_no_answer_to_a_push_of_other_shards() -> None:
    """All of a few shards is encoded like all of many."""
    one = Writing(A, B, C, few=1 << 30)
    one.push()
    double(one.around)
    one.answer(A, Pushed(ALL), NOW + 1)
    one.answer(B, Pushed(ALL), NOW + 1)
    assert one.committed == []


@pytest.mark.parametrize("late", [False, True])
def test_rows_of_children_are_sealed_with_those_of_their_siblings(late: bool) -> None:
    """`late`: the chunk was learned before the doubling, but pushed after it."""
    one = Writing(A, B, C, D, few=1 << 30)
    if late:
        double(one.around)

        def cut(numbers: Shards) -> bytes:
            return LESSONS.parcel(1, numbers)

        one.do(one.writer.push(JOB, 1, cut, sealed(JOB, 1), NOW, SHARDS))
    else:
        one.push()
        double(one.around)
        one.calls.clear()
        one.tick(NOW + 1)
    placement = one.around.placement(NOW)
    assert len(one.calls) == 4
    for call in one.calls:
        assert isinstance(call.message, Push)
        children = unpacked(call.message.shards, MORE)
        assert children.tolist() == placement.shards_of(call.peer).tolist()
        parents = np.unique(children % SHARDS)
        assert call.message.parcel == LESSONS.parcel(1, parents)
        assert call.message.seal == sealed(JOB, 1)(parents)


def test_a_census_counts_what_was_told_of_parents() -> None:
    one = Counting(A, B, C)
    one.tick()
    one.answer(A, said(applied(1, 2), *[applied(1)] * (SHARDS - 1)))
    double(one.around)
    assert one.committed is None
    assert one.answer(B, None) == one.answer(C, None) == []
    assert one.tick(NOW + 2) == [B, C]
    (question,) = [call.message for call in one.calls if call.peer == B]
    assert isinstance(question, Compare)
    assert question.shards == EVERY
    one.answer(B, said(*[applied(1, 2)] * MORE), NOW + 2)
    assert one.committed == [1]
    assert one.census.known(BitMap([1, 2, 3])) == BitMap([1, 2])


def test_an_answer_of_before_counts_for_the_children_of_the_same_number() -> None:
    one = Counting(A, B, C)
    one.tick()
    double(one.around)
    one.answer(A, same(1), NOW + 1)
    assert one.committed is None
    assert one.tick(NOW + 3) == [A]
    (question,) = [call.message for call in one.calls if call.peer == A]
    assert isinstance(question, Compare)
    assert unpacked(question.shards, MORE).tolist() == list(range(SHARDS, MORE))
