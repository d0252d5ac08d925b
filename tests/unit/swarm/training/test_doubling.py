"""Chunks on their way, and censuses, go on while the number of shards doubles."""

import numpy as np
import pytest
from pyroaring import BitMap

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.training.dividing_peers import DividingPeers
from giaann_p2p.swarm.training.writer import Committed
from giaann_p2p.swarm.wire.actions import Compute, Reply
from giaann_p2p.swarm.wire.division import COUNTS_OTHERWISE, DIVIDING
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    BUSY,
    Carried,
    Carry,
    Compare,
    Push,
    Pushed,
    PushFrom,
    Refusal,
)
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from giaann_p2p.swarm.wire.training_messages import LearnAck, learn_order
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    NOW,
    SHARDS,
    A,
    Around,
    B,
    C,
    D,
    applied,
    sealed,
    shards,
)
from tests.unit.swarm.training.helpers_worker import TEXT, Working
from tests.unit.swarm.training.helpers_writer import ALL, Writing
from tests.unit.swarm.training.test_census import Counting, said, same

MORE = 4 * SHARDS
E = Peer(b"E" * 32)
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


@pytest.mark.parametrize("answer", [Refusal("full"), None])
def test_refusals_of_pushes_before_the_doubling_do_no_harm(answer: Refusal | None) -> None:
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


def test_an_answer_to_a_push_before_the_doubling_counts_as_that_push_did() -> None:
    one = Writing(A, B, C, few=1 << 30)
    one.push()
    before = {call.peer: call.number for call in one.calls}
    double(one.around)
    one.calls.clear()
    one.tick(NOW + 1)
    one.do(one.writer.answered(before[A], Pushed(ALL), NOW + 1))
    some = packed(np.arange(1, SHARDS, dtype=np.uint16), SHARDS)
    one.do(one.writer.answered(before[B], Pushed(some), NOW + 1))
    assert one.tick(NOW + 2) == []
    assert one.committed == []
    one.answer(C, Pushed(packed(np.arange(0, MORE, SHARDS, dtype=np.uint16), MORE)), NOW + 2)
    assert one.committed == [Committed(JOB, 1)]


def test_a_large_chunk_gets_a_new_courier_as_the_former_ones_forget_it() -> None:
    one = Writing(A, B, C, few=1)
    one.push()
    (carry,) = one.calls
    double(one.around)
    one.calls.clear()
    (courier,) = one.tick(NOW + 1)
    (call,) = one.calls
    assert isinstance(call.message, Carry)
    assert call.message.shards == EVERY
    one.do(one.writer.answered(carry.number, Carried(), NOW + 1))
    assert one.calls == [call]
    one.answer(courier, Carried(), NOW + 1)
    questions = [call.message for call in one.calls]
    assert all(isinstance(one, PushFrom) and one.source == courier for one in questions)
    assert sorted(call.peer for call in one.calls) == [A, B, C]


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


def refused_beside(few: int, answer: Refusal, again: float) -> tuple[Writing, list[float]]:
    """Let a peer beside the owners refuse a chunk for a minute, that they have taken.

    Return when the peer was asked, in seconds from the first time.
    """
    one = Writing(B, C, D, few=few)
    one.around.newcomers, one.around.beside_owners = {B, C, D}, {A: shards(*range(SHARDS))}
    one.around.without_disk = {A}  # so it is no keeper
    one.push()
    for call in list(one.calls):
        if isinstance(call.message, Carry):
            one.answer(call.peer, Carried())
    for peer in (B, C, D):
        one.answer(peer, Pushed(ALL))
    times, now = list[float](), 0.0
    while now < 60 and not one.committed:
        if any(call.peer == A for call in one.calls):
            times.append(now)
            one.answer(A, answer, NOW + now)
        now += again
        one.tick(NOW + now)
    return one, times


@pytest.mark.parametrize("few", [1, 1 << 30], ids=["fetched", "pushed"])
@pytest.mark.parametrize("answer", [DIVIDING, COUNTS_OTHERWISE])
def test_a_peer_that_divides_its_shards_is_asked_again_and_has_not_refused(
    few: int, answer: Refusal
) -> None:
    one, times = refused_beside(few, answer, 0.25)
    assert 30 < times[-1] < 33  # it counts then, as a liar would say so for ever
    assert max(np.diff(times)) <= 2.25
    assert one.committed == [Committed(JOB, 1)]


@pytest.mark.parametrize("few", [1, 1 << 30], ids=["fetched", "pushed"])
def test_a_peer_that_refuses_for_another_reason_is_not_waited_for(few: int) -> None:
    one, times = refused_beside(few, Refusal(f"{BUSY}: the disk is slow"), 0.25)
    assert times == [0]
    assert one.committed == [Committed(JOB, 1)]


def test_a_peer_is_waited_for_once_an_edition_whatever_it_answers_in_between() -> None:
    around = Around(A, B)
    some = DividingPeers(around)
    assert some.is_waited_for(A, DIVIDING, NOW)
    assert some.is_waited_for(A, COUNTS_OTHERWISE, NOW + 20)
    assert not some.is_waited_for(A, Pushed(ALL), NOW + 21)
    assert some.is_waited_for(A, DIVIDING, NOW + 29)
    assert not some.is_waited_for(A, DIVIDING, NOW + 30)
    assert some.is_waited_for(B, DIVIDING, NOW + 30)
    around.rules = around.rules._replace(edition=1)
    assert some.is_waited_for(A, DIVIDING, NOW + 60)
    assert some.is_waited_for(A, DIVIDING, NOW + 89)
    assert not some.is_waited_for(A, DIVIDING, NOW + 90)


def test_a_peer_that_always_says_that_it_divides_delays_only_the_first_chunks() -> None:
    one, _ = refused_beside(1 << 30, DIVIDING, 0.25)
    assert len(one.committed) == 1
    one.calls.clear()
    one.push(2, now=NOW + 60)
    for peer in (B, C, D):
        one.answer(peer, Pushed(ALL), NOW + 60)
    assert len(one.committed) == 1
    one.answer(A, DIVIDING, NOW + 60)
    assert len(one.committed) == 2


def test_peers_that_take_turns_to_say_that_they_divide_do_not_stop_a_chunk() -> None:
    one = Writing(B, C, D, few=1 << 30)
    one.around.newcomers, one.around.without_disk = {B, C, D}, {A, E}
    one.around.beside_owners = {A: shards(*range(SHARDS)), E: shards(*range(SHARDS))}
    one.push()
    for peer in (B, C, D):
        one.answer(peer, Pushed(ALL))
    now = 0.0
    while now < 120 and not one.committed:
        liar, other = (A, E) if now % 40 < 20 else (E, A)
        for peer, answer in ((liar, DIVIDING), (other, Refusal("no"))):
            if any(call.peer == peer for call in one.calls):
                one.answer(peer, answer, NOW + now)
        if now % 10 == 0:  # a change of what the peers beside the owners hold
            one.around.beside_owners = dict(one.around.beside_owners)
        now += 0.25
        one.tick(NOW + now)
    assert one.committed
    assert now < 60


def learn_in(one: Working, doublings: int, peer: Peer = C, now: float = NOW) -> Message:
    one.tickets += 1
    question = learn_order(JOB, 1, TEXT, doublings)
    one.do(one.worker.asked(one.tickets, peer, question, now))
    return one.replies[one.tickets]


def test_a_chunk_is_sealed_in_the_layout_that_its_order_names() -> None:
    one = Working()
    order = learn_order(JOB, 1, TEXT, 3)
    acts = one.worker.asked(7, C, order, NOW)
    assert acts == [Reply(7, LearnAck()), Compute(JOB, 1, TEXT, 3)]


@pytest.mark.parametrize("is_learned", [False, True])
def test_a_chunk_in_work_is_not_sealed_in_another_layout(is_learned: bool) -> None:
    one = Working()
    one.brings = False
    assert learn_in(one, 1) == LearnAck()
    if is_learned:
        one.computed(1)
    for peer in (C, D):
        answer = learn_in(one, 0, peer)
        assert isinstance(answer, Refusal)
        assert answer.is_busy
    assert len(one.of(D)) == 0
    assert learn_in(one, 1, D) == LearnAck()
    assert one.learning == [(JOB, 1)]
    assert len(one.of(D)) == is_learned


def test_a_chunk_is_cut_as_chunks_of_the_size_that_its_order_names() -> None:
    one = Working()
    acts = one.worker.asked(7, C, learn_order(JOB, 1, TEXT, 0, 128), NOW)
    assert acts == [Reply(7, LearnAck()), Compute(JOB, 1, TEXT, 0, 128)]
    (told,) = one.worker.asked(8, D, learn_order(JOB, 1, TEXT, 0), NOW)
    assert isinstance(told, Reply)
    assert isinstance(told.message, Refusal)  # a lying client's: a size belongs to a job


def test_a_chunk_that_was_learned_long_ago_is_learned_again_in_another_layout() -> None:
    one = Working()
    one.brings = False
    learn_in(one, 0)
    one.computed(1)
    assert isinstance(learn_in(one, 1, D, NOW + 4), Refusal)
    assert learn_in(one, 1, D, NOW + 6) == LearnAck()
    assert one.learning == [(JOB, 1), (JOB, 1)]
    assert one.worker.busy == 1
    assert [peer for peer, _ in one.worker._wanted(JOB, 1)] == [D]
    one.computed(1, now=NOW + 7)
    assert len(one.of(C)) == 1  # it is told nothing of the other result
    assert len(one.of(D)) == 1


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


@pytest.mark.parametrize("answer", [DIVIDING, COUNTS_OTHERWISE])
def test_an_owner_that_divides_its_shards_is_asked_again_before_others(answer: Refusal) -> None:
    """The others may have little of what it has."""
    one = Counting(A, B, C)
    one.around.ready_at = {shard: [A, B] for shard in range(SHARDS)}
    assert one.tick() == [A, B]
    one.answer(A, same(1))
    assert one.answer(B, answer) == []
    assert one.tick(NOW + 1) == [B]
    assert one.answer(B, answer, NOW + 30) == [C]  # a liar would say so for ever


def test_an_answer_of_before_counts_for_all_children_of_the_shards_it_is_of() -> None:
    one = Counting(A, B, C)
    one.tick()
    double(one.around)
    one.answer(A, said(applied(1, 2), *[applied(1)] * (SHARDS - 1)), NOW + 1)
    assert one.tick(NOW + 3) == []
    one.answer(B, same(1, 2), NOW + 3)
    assert one.committed == [1]


def test_a_census_that_has_ended_still_knows_what_was_never_committed() -> None:
    one = Counting(A, B, C)
    one.tick()
    for peer in (A, B, C):
        one.answer(peer, same(1))
    double(one.around)
    one.tick(NOW + 1)
    assert one.committed == [1]
    assert one.census.known(BitMap([1, 2])) == BitMap([1])
