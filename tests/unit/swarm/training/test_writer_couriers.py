"""Rows that leave the writer once, to a courier (see test_couriers)."""

import pytest

from giaann_p2p.swarm.training.writer import Committed
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Carried, Carry, Pushed, PushFrom, Refusal
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import JOB, LESSONS, NOW, SHARDS, A, B, C, D, sealed, shards
from tests.unit.swarm.training.helpers_writer import ALL, EVERY, NONE, Writing, asked


@pytest.mark.parametrize(("chunk", "courier"), [(3, A), (1, B), (2, C)])
def test_rows_leave_once_and_each_chunk_has_another_courier(chunk: int, courier: bytes) -> None:
    one = Writing(A, B, C, few=0)
    one.push(chunk)
    assert asked(one) == {courier: (None, EVERY)}
    one.answer(courier, Carried())
    assert asked(one) == dict.fromkeys((A, B, C), (courier, EVERY))
    assert {call.timeout for call in one.calls} == {2.5}
    one.answer(A, Pushed(ALL))
    assert one.committed == []
    one.answer(B, Pushed(ALL))
    assert one.committed == [Committed(JOB, chunk)]
    rows = len(LESSONS.parcel(chunk, shards(*EVERY)))
    words = len(sealed(JOB, chunk)(shards(*EVERY)).words)
    assert one.sent[0] <= rows + 4 * words + 200
    one.answer(C, Pushed(ALL))
    assert one.tick(NOW + 100) == []


@pytest.mark.parametrize("answer", [None, Refusal("source: no"), Pushed(NONE)])
def test_who_could_not_fetch_gets_the_rows_at_once(answer: Message | None) -> None:
    one = Writing(A, B, C, few=0)
    one.push(3)
    one.answer(A, Carried())
    one.answer(C, Pushed(ALL))
    one.answer(B, answer)
    assert asked(one) == {A: (A, EVERY), B: (None, EVERY)}
    assert one.around.suspected == []
    one.answer(B, Pushed(ALL))
    assert one.committed == [Committed(JOB, 3)]


def test_among_few_holders_a_courier_that_failed_the_first_is_given_up() -> None:
    one = Writing(A, B, C, few=0)
    one.push(3)
    one.answer(A, Carried())
    one.answer(B, None)
    assert asked(one) == {A: (A, EVERY), B: (None, EVERY), C: (A, EVERY)}
    assert isinstance(next(call.message for call in one.calls if call.peer == B), Carry)


def test_who_could_fetch_a_part_gets_the_rest() -> None:
    one = Writing(A, B, few=0)
    one.push(2)
    one.answer(A, Carried())
    one.answer(B, Pushed(packed(shards(0, 3), SHARDS)))
    assert asked(one) == {A: (A, EVERY), B: (None, [1, 2])}


def test_who_is_busy_is_told_again_when_it_says() -> None:
    one = Writing(A, B, few=0)
    one.push(2)
    one.answer(A, Carried())
    one.answer(A, Pushed(ALL))
    one.answer(B, Refusal("busy: later", 5.0))
    assert one.tick(NOW + 4) == []
    assert one.tick(NOW + 5) == [B]
    assert asked(one) == {B: (A, EVERY)}


def test_a_courier_that_takes_long_is_not_waited_for() -> None:
    one = Writing(A, B, C, few=0)
    one.push(3)
    assert one.tick(NOW + 0.9) == []
    assert one.tick(NOW + 1) == [B]  # the next courier
    assert asked(one) == {A: (None, EVERY), B: (None, EVERY)}
    (first,) = [call for call in one.calls if call.peer == A]
    one.answer(B, Carried(), NOW + 1.1)
    assert {call.peer for call in one.calls if isinstance(call.message, PushFrom)} == {A, B, C}
    one.calls.remove(first)
    one.do(one.writer.answered(first.number, Carried(), NOW + 1.1))  # it helps after all
    for peer in (A, B):
        one.answer(peer, Pushed(ALL), NOW + 1.2)
    assert one.committed == [Committed(JOB, 3)]


def test_a_courier_that_refuses_is_followed_by_another() -> None:
    one = Writing(A, B, C, few=0)
    one.push(3)
    one.answer(A, Refusal("full"))
    assert asked(one) == {B: (None, EVERY)}


def test_a_peer_that_is_suspected_is_no_courier() -> None:
    one = Writing(A, B, C, few=0)
    one.around.unreachable = {A}
    one.push(3)
    assert asked(one) == {B: (None, EVERY)}
    one.around.unreachable = {A, B}
    one.answer(B, Carried())
    assert asked(one) == {C: (None, EVERY)}


def test_few_rows_are_sent_to_each_from_here() -> None:
    one = Writing(A, B, C, few=1 << 20)
    one.push(3)
    assert asked(one) == dict.fromkeys((A, B, C), (None, EVERY))


def test_who_failed_many_holders_is_no_courier_for_a_while() -> None:
    one = Writing(A, B, C, few=0)

    def bring(chunk: int, now: float, b_says: Message | None) -> object:
        """Bring a chunk whose turn it is to go by A, and return who carries it."""
        one.push(chunk, now=now)
        (courier,) = asked(one)
        one.answer(courier, Carried(), now)
        for peer in sorted(asked(one), key=lambda peer: peer == B):
            one.answer(peer, b_says if peer == B else Pushed(ALL), now)
        for peer in list(asked(one)):
            one.answer(peer, Pushed(ALL), now)
        return courier

    assert bring(3, NOW, None) == A
    assert bring(6, NOW + 14, Pushed(ALL)) == B
    assert bring(9, NOW + 16, Refusal("source: no")) == A
    assert bring(12, NOW + 45, Pushed(ALL)) == B  # twice as long
    assert bring(15, NOW + 47, Pushed(ALL)) == A
    assert bring(18, NOW + 48, None) == A
    assert bring(21, NOW + 64, Pushed(ALL)) == A  # it had worked meanwhile
    assert len(one.committed) == 7


def test_a_pair_of_which_one_could_not_fetch_is_left_alone_for_a_while() -> None:
    one = Writing(A, B, C, D, few=0)
    one.around.replicas = 4
    for chunk, source in ((4, A), (8, None)):  # it is A's turn
        one.push(chunk)
        one.answer(A, Carried())
        assert asked(one)[B] == (source, EVERY)
        one.answer(B, None)
        for peer in list(asked(one)):
            one.answer(peer, Pushed(ALL))
        one.calls.clear()
