"""Rows that do not fit into one answer: fewer are asked for at once, and in the end slices."""

from collections import Counter

import pytest

from giaann_p2p.model.rows import Neuron
from giaann_p2p.swarm.reading import row_calls
from giaann_p2p.swarm.reading.reader import Reader
from giaann_p2p.swarm.reading.row_vote import Verify
from giaann_p2p.swarm.replication import answers
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import TOO_LONG, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_messages import Read, ReadSlice
from tests.helpers_swarm import LAYOUT, LIMITS, NOW, SHARDS, A, B, C, sent, store
from tests.unit.swarm.reading.test_reader import (
    CHUNKS,
    HOME,
    NEURONS,
    SAME,
    STORE,
    Reading,
    asked_at_once,
    assert_rows,
)
from tests.unit.swarm.reading.test_reader_doubling import DOUBLED, double, half
from tests.unit.swarm.replication.test_answers import connections

TOO_MUCH = Refusal(f"{TOO_LONG}: ask for less")
FEW = 6
"""The most connections in one answer here; some rows have more."""


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Return a peer that answers with few connections at once."""
    monkeypatch.setattr(answers, "_MOST_SENT", FEW)
    held = store(chunks=CHUNKS)
    held._state.columns.merge_all()  # what is not merged yet does not count before it is read
    return Answers(held, lambda shard: ReplicaState.READY)


def served(one: Reading, by: Answers) -> Counter[type[Message]]:
    """Let a peer answer all calls; return how many of each kind there were."""
    kinds = Counter[type[Message]]()
    while one.calls:
        question = one.calls[0].message
        kinds[type(question)] += 1
        one.answer(sent(by.to(sent(question))))
    return kinds


@pytest.mark.parametrize("peers", [1, 2, 3])
def test_rows_that_do_not_fit_are_read_in_parts(short: Answers, peers: int) -> None:
    one = Reading(*[A, B, C][:peers])
    one.read(NEURONS)
    kinds = served(one, short)
    assert kinds[Read] > len(NEURONS) // FEW
    assert kinds[ReadSlice] > 1
    assert_rows(one.rows, NEURONS)
    assert one.around.suspected == []
    assert len(one.reader) == 0


def test_all_rows_are_put_to_the_vote_slice_by_slice(short: Answers) -> None:
    one = Reading(A, B, C)
    one.reader = Reader(LIMITS, one.around, 4.0, 15.0, Verify(1.0))
    one.read(NEURONS)
    kinds = served(one, short)
    assert kinds[ReadSlice] > 2
    assert_rows(one.rows, NEURONS)
    assert one.reader.settled


def test_slices_are_not_compared_with_whole_rows(
    short: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampled = list[Neuron]()

    def noted(verify: Verify, number: int, neurons: list[Neuron]) -> list[Neuron]:
        sampled.extend(neurons)
        return neurons

    monkeypatch.setattr("giaann_p2p.swarm.reading.reader.sample", noted)
    one = Reading(A, B, C)
    one.reader = Reader(LIMITS, one.around, 4.0, 15.0, Verify(0.5, bytes(16)))
    one.read(NEURONS)
    served(one, short)
    assert_rows(one.rows, NEURONS)
    sizes = {neuron: connections(STORE, neuron) for neuron in NEURONS}
    assert sorted(sampled) == [neuron for neuron in NEURONS if sizes[neuron] <= FEW]


def test_slices_that_differ_are_no_matter_of_dispute(short: Answers) -> None:
    behind = Answers(store(chunks=CHUNKS[:1]), lambda shard: ReplicaState.READY)
    one = Reading(A, B, C)
    one.around.capacities = dict.fromkeys([A, B, C], 1 << 30)
    one.reader = Reader(LIMITS, one.around, 4.0, 15.0, Verify(1.0))
    one.read(NEURONS)
    sliced = 0
    while one.calls:
        call = one.calls[0]
        is_sliced = isinstance(call.message, ReadSlice)
        sliced += is_sliced
        by = behind if is_sliced and call.peer == B else short
        one.answer(sent(by.to(sent(call.message))))
    assert sliced > 2
    assert one.reader.disputes.opened == 0
    assert one.rows is not None


def test_who_says_so_is_asked_later_than_others_for_a_while() -> None:
    one = Reading(A, B)
    one.read(SAME)
    assert one.asked == [A]
    one.answer(TOO_MUCH, NOW + 0.001)
    assert one.asked == [B]
    one.serve(NOW + 0.02)
    for tenth in range(1, 9):
        one.read(SAME, NOW + tenth / 10)
        assert one.asked == [B]
        one.serve(NOW + tenth / 10 + 0.02)


def test_one_peer_alone_makes_nobody_ask_for_less_while_others_are_left() -> None:
    one = Reading(A, B, C)
    one.read(SAME)
    first = one.calls[0].message
    one.answer(TOO_MUCH)
    (call,) = one.calls
    assert call.message == first
    one.serve()
    assert_rows(one.rows, SAME)
    assert one.around.suspected == []


def test_two_peers_of_three_are_enough() -> None:
    one = Reading(A, B, C)
    one.read(SAME)
    one.answer(TOO_MUCH)
    one.answer(TOO_MUCH)
    half = len(SAME) // 2
    assert [asked_at_once(call) for call in one.calls] == [half, half]


def test_the_last_peer_is_believed_at_once() -> None:
    one = Reading(A)
    one.read(SAME[:1])
    one.answer(TOO_MUCH)
    assert [call.message for call in one.calls] == [
        ReadSlice(
            SAME[0].concept.to_bytes(8, "little"), SAME[0].feature.to_bytes(8, "little"), 1, n
        )
        for n in range(2)
    ]


def test_while_an_answer_is_on_its_way_less_is_not_asked_for() -> None:
    one = Reading(A, B)
    one.read(SAME)
    one.do(one.reader.tick(one.reader.next_tick(NOW)))
    assert one.asked == [A, B]
    one.answer(TOO_MUCH)
    assert [call.message for call in one.calls[1:]] == []
    one.serve()
    assert_rows(one.rows, SAME)


def test_who_says_so_of_each_slice_is_suspected_and_costs_the_reader_little() -> None:
    one = Reading(A)
    one.read(SAME[:2])
    now, most, answers = NOW, 0, 0
    while not one.told:
        most = max(most, len(one.calls))
        if one.calls:
            one.answer(TOO_MUCH, now)
            answers += 1
        else:
            now = one.reader.next_tick(now)
            one.do(one.reader.tick(now))
    assert one.rows is None
    assert set(one.around.suspected) == {A}
    assert most <= 4
    assert answers < 1000


def test_the_smallest_slice_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_calls, "MOST_HALVINGS", 2)
    one = Reading(A)
    one.read(SAME[:1])
    for _ in range(3):
        one.answer(TOO_MUCH)
    assert one.around.suspected == []
    one.answer(TOO_MUCH)
    assert one.around.suspected == [A]
    halvings = [call.message.halvings for call in one.calls if isinstance(call.message, ReadSlice)]
    assert max(halvings) == 2


def test_slices_are_asked_for_one_by_one_whatever_others_refuse(short: Answers) -> None:
    """One call has one slice, even if two of them are late at the same time."""
    one = Reading()
    long = max(SAME, key=lambda neuron: connections(STORE, neuron))
    others = [neuron for neuron in NEURONS if LAYOUT.shard_of(*neuron) != HOME][:4]
    one.around.ready_at = {n: [A, B] if n == HOME else [C] for n in range(SHARDS)}
    one.read([long, *others])
    for peer in (A, B):
        at = one.asked.index(peer)
        one.answer(TOO_MUCH, at=at)
    for _ in range(one.asked.count(C)):
        one.answer(TOO_MUCH, at=one.asked.index(C))
    one.do(one.reader.tick(NOW + 1.9))  # all slices are late, and asked of another peer
    assert Counter(one.asked)[A] == Counter(one.asked)[B] == 2
    served(one, short)
    assert_rows(one.rows, [long, *others])


@pytest.mark.parametrize("lie", ["the other half", "everything"])
def test_an_answer_with_targets_of_another_slice_does_not_count(
    lie: str, short: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Reading(A, B)
    long = max(NEURONS, key=lambda neuron: connections(STORE, neuron))
    one.read([long])
    one.answer(TOO_MUCH)
    one.answer(TOO_MUCH)
    first = one.calls[0]
    asked = first.message
    assert isinstance(asked, ReadSlice)
    question: Message = ReadSlice(asked.concept, asked.feature, 1, 1 - asked.number)
    if lie == "everything":
        question = Read(asked.concept, asked.feature)
    with monkeypatch.context() as patched:
        patched.setattr(answers, "_MOST_SENT", 1 << 20)
        one.answer(sent(short.to(question)))
    assert one.around.suspected == [first.peer]
    served(one, short)
    assert_rows(one.rows, [long])


def test_two_peers_must_say_so_of_the_same_call() -> None:
    """Or one peer could have a row cut that was among others in the call to another one."""
    one = Reading()
    one.around.ready_at = {n: [A, B, C] if n == HOME else [A] for n in range(SHARDS)}
    others = [neuron for neuron in NEURONS if LAYOUT.shard_of(*neuron) != HOME][:4]
    for peer, seconds in ((A, 0.01), (B, 0.5), (C, 0.5)):
        one.reader.latencies.took(peer, seconds, NOW)
    one.read([SAME[0], *others])
    assert one.asked == [A]
    one.answer(TOO_MUCH)
    second, third = (B, C) if B in one.asked else (C, B)
    one.answer(TOO_MUCH, at=one.asked.index(second))
    (call,) = [call for call in one.calls if call.peer == third]
    assert asked_at_once(call) == 1


def test_slices_are_found_where_shards_are_doubled_meanwhile(short: Answers) -> None:
    one = Reading(A)
    one.read(NEURONS)
    while not all(isinstance(call.message, ReadSlice) for call in one.calls):
        one.answer(sent(short.to(sent(one.calls[0].message))))
    assert one.calls
    double(one, [A], [B])
    lower, upper = half(False), half(True)
    one.do(one.reader.tick(NOW))
    while one.calls:
        by = lower if one.calls[0].peer == A else upper
        one.answer(sent(by.to(sent(one.calls[0].message), DOUBLED.doublings)))
    assert_rows(one.rows, NEURONS)
