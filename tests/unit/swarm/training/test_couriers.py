"""Chunks whose rows go to one peer, from which all holders fetch them."""

from collections.abc import Sequence

import pytest

from giaann_p2p.store.codec.parcel import sizes_of
from giaann_p2p.swarm.training import couriers as module
from giaann_p2p.swarm.training import writer as writer_module
from giaann_p2p.swarm.training.couriers import Couriers
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    MOST_AGAIN,
    Carried,
    Carry,
    Push,
    Pushed,
    PushFrom,
    Refusal,
)
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import JOB, LESSONS, MESSAGES, NOW, SHARDS, A, B, C, D, sealed, shards
from tests.unit.swarm.training.helpers_writer import ALL, Writing

PEERS = [Peer(bytes([65 + n]) * 32) for n in range(16)]
WHOLE = shards(*range(SHARDS))


def crowd(*peers: bytes, few: int = 0) -> Writing:
    """Return a writer whose chunks have couriers, with these holders."""
    return Writing(*(peers or PEERS), few=few)


def all_alike() -> Writing:
    """Return a writer that pushes a chunk to holders that all hold, and must have, each shard."""
    one = Writing(*PEERS, few=0, quorum=len(PEERS))
    one.around.replicas = len(PEERS)
    one.push()
    return one


def asked(one: Writing) -> dict[bytes, bytes]:
    """Return whom each peer is told to fetch from."""
    return {
        call.peer: call.message.source for call in one.calls if isinstance(call.message, PushFrom)
    }


def carry(one: Writing) -> Peer:
    """Return the peer that is asked to carry rows, the only thing that is asked."""
    (call,) = one.calls
    assert isinstance(call.message, Carry)
    return call.peer


def shards_told(one: Writing, peer: bytes) -> bytes:
    (question,) = [call.message for call in one.calls if call.peer == peer]
    assert isinstance(question, PushFrom | Push)
    return question.shards


def reply(one: Writing, call: Call, message: Message | None, now: float = NOW) -> None:
    one.calls.remove(call)
    one.do(one.writer.answered(call.number, message, now))


def fail(one: Writing, courier: bytes, answer: Message | None) -> None:
    """Have the holders fail that were told to fetch from a courier, until no more are told."""
    while told := [
        call
        for call in one.calls
        if isinstance(call.message, PushFrom) and call.message.source == courier
    ]:
        reply(one, told[0], answer)
        if any(isinstance(call.message, Carry) for call in one.calls):
            return


def answer_all(one: Writing) -> None:
    """Have all rows taken, and nothing carried."""
    while one.calls:
        message = one.calls[0].message
        assert isinstance(message, Push | PushFrom)
        reply(one, one.calls[0], Pushed(message.shards))


def serve(one: Writing, peers: Sequence[bytes], now: float = NOW) -> None:
    for peer in peers:
        one.answer(peer, Pushed(shards_told(one, peer)), now)


def test_the_rows_leave_once_and_each_holder_is_told_once() -> None:
    one = crowd()
    one.push()
    (call,) = one.calls
    seal = sealed(JOB, 1)(WHOLE)
    assert call.message == Carry(JOB, 1, ALL, LESSONS.parcel(1, WHOLE), seal)
    courier, told = call.peer, list[bytes]()
    one.answer(courier, Carried())
    placement = one.around.placement(NOW)
    while one.calls:
        assert {*asked(one).values()} == {courier}
        told += (now := list(asked(one)))
        assert one.calls[0].message == PushFrom(
            JOB, 1, packed(placement.shards_of(now[0]), SHARDS), courier, seal.words
        )
        serve(one, now)
    assert told[0] == courier  # it has the rows already
    assert sorted(told) == sorted(peer for peer in PEERS if len(placement.shards_of(peer)))
    assert len(one.committed) == 1


def test_a_courier_acknowledges_nothing() -> None:
    one = crowd(A, B, C)
    one.push()
    one.answer(carry(one), Carried())
    assert one.committed == []
    assert one.writer._chunks[JOB, 1].short == SHARDS


def test_couriers_take_turns() -> None:
    one = crowd()
    found = set()
    for chunk in range(len(PEERS)):
        one.push(chunk)
        found.add(carry(one))
        one.calls.clear()
    assert len(found) == len(PEERS)


@pytest.mark.parametrize(
    ("peers", "few", "replicas"),
    [(4, 1 << 20, 3), (4, 0, 1), (1, 0, 3)],
    ids=["few bytes", "one holder each", "one holder"],
)
def test_chunks_have_no_courier_where_it_is_of_no_use(peers: int, few: int, replicas: int) -> None:
    one = Writing(*PEERS[:peers], few=few)
    one.around.replicas = replicas
    one.push()
    assert one.calls
    assert all(isinstance(call.message, Push) for call in one.calls)


def test_only_a_few_are_told_at_first_and_more_for_each_that_was_served() -> None:
    one = all_alike()
    courier = carry(one)
    one.answer(courier, Carried())
    sizes = []
    while one.calls:
        sizes.append(len(asked(one)))
        serve(one, list(asked(one)))
    assert sizes == [4, 7, 5]


def test_not_too_many_fetch_from_a_courier_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_AT_ONCE", 6)
    one = all_alike()
    one.answer(carry(one), Carried())
    sizes = []
    while one.calls:
        sizes.append(len(asked(one)))
        serve(one, list(asked(one)))
    assert sizes == [4, 6, 6]


@pytest.mark.parametrize(
    "answer", [None, Refusal("no"), Refusal("busy: later", 3.0), Pushed(ALL), *MESSAGES]
)
def test_another_peer_is_asked_to_carry_if_one_does_not(answer: Message | None) -> None:
    one = crowd()
    one.push()
    tried = []
    for _ in range(3):
        tried.append(carry(one))
        if isinstance(answer, Carried):
            return
        one.answer(tried[-1], answer)
    assert len({*tried}) == 3
    # Then the rows go as in a small swarm.
    assert {type(call.message) for call in one.calls} == {Push}
    while one.calls:
        for call in list(one.calls):
            one.answer(call.peer, Pushed(shards_told(one, call.peer)))
    assert len(one.committed) == 1
    is_told = isinstance(answer, Refusal | Pushed)
    assert [peer in one.around.suspected for peer in tried] == [not isinstance(answer, Refusal)] * 3
    assert is_told or one.around.suspected


def test_a_peer_that_did_not_carry_is_not_asked_for_the_next_chunks() -> None:
    one = crowd(A, B, C)
    one.push(0)
    first = carry(one)
    one.answer(first, Refusal("what is that?"))
    one.calls.clear()
    asked_then = set()
    for chunk in range(1, 9):
        one.push(chunk, now=NOW + 1)
        asked_then.add(carry(one))
        one.calls.clear()
    assert asked_then == {A, B, C} - {first}
    one.push(9, now=NOW + 60)
    assert carry(one) in {A, B, C}


@pytest.mark.parametrize("answer", [None, Refusal("source: it did not send the rows; push them")])
def test_a_courier_that_serves_nobody_is_soon_given_up(answer: Message | None) -> None:
    one = all_alike()
    bad = carry(one)
    one.answer(bad, Carried())
    fail(one, bad, answer)
    (call,) = [call for call in one.calls if isinstance(call.message, Carry)]
    assert call.peer != bad
    reply(one, call, Carried())
    fail(one, bad, answer)  # those that were told before; it is not their fault either
    pushed = [call.peer for call in one.calls if isinstance(call.message, Push)]
    assert len(pushed) == 2  # the first two, before it was clear whose fault it was
    answer_all(one)
    assert len(one.committed) == 1
    seal = sealed(JOB, 1)(WHOLE)
    rows, telling = len(LESSONS.parcel(1, WHOLE)) + seal.size, len(seal.words) + len(ALL) + len(A)
    assert one.sent[0] <= 4 * rows + (len(PEERS) + 5) * telling


def test_who_cannot_fetch_gets_its_rows_from_here() -> None:
    one = all_alike()
    courier = carry(one)
    one.answer(courier, Carried())
    lonely = list(asked(one))[1]
    one.answer(lonely, None)
    assert [call.peer for call in one.calls if isinstance(call.message, Push)] == [lonely]
    assert not [call for call in one.calls if isinstance(call.message, Carry)]


def test_after_three_that_serve_nobody_rows_go_as_in_a_small_swarm() -> None:
    one = all_alike()
    bad = set[bytes]()
    while carries := [call for call in one.calls if isinstance(call.message, Carry)]:
        (call,) = carries
        bad.add(call.peer)
        reply(one, call, Carried())
        fail(one, call.peer, None)
    assert len(bad) == 3
    answer_all(one)
    assert len(one.committed) == 1


def test_a_courier_that_falls_silent_is_given_up_at_once() -> None:
    one = crowd()
    one.push()
    first = carry(one)
    one.answer(first, Carried())
    one.around.unreachable.add(first)
    one.tick(NOW + 1)
    (second,) = [call.peer for call in one.calls if isinstance(call.message, Carry)]
    assert second != first


def test_a_holder_that_says_when_to_come_again_is_not_the_couriers_fault() -> None:
    one = all_alike()
    courier = carry(one)
    one.answer(courier, Carried())
    busy = list(asked(one))[:4]
    for peer in busy:
        one.answer(peer, Refusal("busy: later", 5.0))
    assert not [call for call in one.calls if isinstance(call.message, Carry)]
    assert len(asked(one)) == 4  # four others have their places
    one.tick(NOW + 6)
    assert {*asked(one).values()} == {courier}
    assert MOST_AGAIN > 5.0


def test_rows_that_are_too_many_for_one_courier_have_several(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, half = LESSONS.parcel(1, WHOLE), LESSONS.parcel(1, WHOLE[:2])
    most = writer_module.carried_size(half, sealed(JOB, 1)(WHOLE[:2]))
    assert most < writer_module.carried_size(whole, sealed(JOB, 1)(WHOLE))
    monkeypatch.setattr(writer_module, "MOST_CARRIED", most)
    one = all_alike()
    numbers, couriers = list[int](), list[bytes]()
    while one.calls:
        call = one.calls[0]
        if isinstance(call.message, Carry):
            assert sizes_of(call.message.parcel).connections < sizes_of(whole).connections
            numbers += unpacked(call.message.shards, SHARDS).tolist()
            couriers.append(call.peer)
            reply(one, call, Carried())
        else:
            assert isinstance(call.message, PushFrom)
            reply(one, call, Pushed(call.message.shards))
    assert sorted(numbers) == list(range(SHARDS))
    assert len({*couriers}) == len(couriers) > 1
    assert len(one.committed) == 1


def test_who_is_cut_for_is_told_in_advance() -> None:
    one = crowd()
    assert [cut.tolist() for cut in one.writer.cuts(NOW)] == [list(range(SHARDS))]
    few = Writing(A, B)
    few.around.replicas = 1
    placement = few.around.placement(NOW)
    assert sorted(cut.tolist() for cut in few.writer.cuts(NOW)) == sorted(
        placement.shards_of(peer).tolist() for peer in (A, B)
    )


def test_nothing_waits_for_couriers_that_no_peer_may_be() -> None:
    couriers = Couriers(WHOLE)
    assert couriers.next_of([A, B], lambda peer: False, NOW) is None
    ways, rest = couriers.way(C, WHOLE, lambda peer: True)
    assert (ways, rest.tolist()) == ([], WHOLE.tolist())
    assert couriers.waiting == []


def test_who_is_no_courier_is_not_blamed() -> None:
    couriers = Couriers(WHOLE)
    couriers.asks(D, A)
    couriers.answered(D, A, served=False)
    assert couriers.blamed(D, A) == set()
    assert couriers.asked_of(D) == 0


@pytest.mark.parametrize("reason", ["busy: too many updates wait", "the disk is full", "who?"])
def test_what_a_holder_refuses_for_its_own_reasons_is_not_its_couriers_fault(reason: str) -> None:
    one = all_alike()
    courier = carry(one)
    one.answer(courier, Carried())
    refusing = list(asked(one))[1:4]
    for peer in refusing:
        one.answer(peer, Refusal(reason))
    assert {type(call.message) for call in one.calls} == {PushFrom}  # no rows are sent again
    answer_all(one)
    one.tick(NOW + 2.1)
    assert asked(one) == dict.fromkeys(refusing, courier)
    answer_all(one)
    assert len(one.committed) == 1


def test_a_courier_is_avoided_once_for_one_chunk_however_many_it_failed() -> None:
    one = all_alike()
    bad = carry(one)
    one.answer(bad, Carried())
    serve(one, list(asked(one)))
    told = list(asked(one))
    one.around.unreachable.add(bad)  # for a moment
    one.tick(NOW + 1)
    one.around.unreachable.clear()
    for call in [call for call in one.calls if call.peer in told and call.message.source == bad]:
        reply(one, call, None)
    assert one.writer._apart.holds(bad, told[0], NOW)
    assert not one.writer._apart.holds(bad, bad, NOW + 16)


def test_who_serves_only_itself_is_avoided_longer_each_time() -> None:
    one = Writing(A, B, C, D, few=0)
    one.around.replicas = 4
    pauses = []
    now = NOW
    for _ in range(3):
        one.push(4, now=now)  # it is A's turn
        call = one.calls[0]
        assert (call.peer, type(call.message)) == (A, Carry)
        one.calls.clear()
        one.do(one.writer.answered(call.number, Carried(), now))
        for told in list(one.calls):
            reply(one, told, Pushed(ALL) if told.peer == A else None, now)
        one.calls.clear()
        one.writer.give_up(JOB, 4)
        pauses.append(next(n for n in range(1000) if not one.writer._apart.holds(A, A, now + n)))
        now += 2 * pauses[-1]
    assert pauses == sorted(pauses)
    assert pauses[2] == 4 * pauses[0] > 0


def test_a_holder_that_fails_at_one_courier_after_the_other_counts_once() -> None:
    couriers = Couriers(WHOLE, holders=16)
    for courier in (A, B):
        couriers.sent(courier, couriers.left, NOW + 1)
        couriers.accepted(courier)
        failed = [couriers.blamed(courier, holder) for holder in (*PEERS[8:11], D)]
        if courier == A:
            assert failed[2] == {*PEERS[8:11]}
            assert not couriers.has(A)
    assert couriers.has(B)


def test_each_part_of_the_rows_has_its_own_tries() -> None:
    couriers = Couriers(WHOLE, holders=16)
    couriers.sent(A, WHOLE[:1], NOW + 1)
    couriers.accepted(A)
    for peer in (B, C, D):
        couriers.sent(peer, WHOLE[1:2], NOW + 1)
        couriers.declined(peer)
    assert couriers.left.tolist() == [1, 2, 3]


def test_who_does_not_know_the_courier_gets_its_rows_from_here() -> None:
    one = Writing(A, B, C, few=0)
    one.push(3)
    one.answer(A, Carried())
    one.answer(B, Refusal("unknown source: this peer knows no storage peer A"))
    assert {call.peer: type(call.message) for call in one.calls} == {
        A: PushFrom, B: Push, C: PushFrom
    }  # fmt: skip
    assert one.writer._apart.holds(A, B, NOW)
    assert not one.writer._apart.holds(A, A, NOW)


def test_a_courier_is_told_first_even_if_it_was_not_first_in_turn() -> None:
    one = all_alike()
    one.answer(carry(one), Refusal("no"))
    second = carry(one)
    one.answer(second, Carried())
    assert next(iter(asked(one))) == second
