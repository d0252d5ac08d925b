"""Comparing sets of chunks: who is asked when, and what an answer is worth."""

import pytest
from pyroaring import BitMap

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.replication import anti_entropy, set_comparison
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.actions import Apply, Call
from giaann_p2p.swarm.wire.messages import (
    Compare,
    Compared,
    Fetch,
    Offered,
    Push,
    Pushed,
    Refusal,
)
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    MESSAGES,
    NOW,
    OTHER_JOB,
    SETTINGS,
    SHARDS,
    A,
    Around,
    B,
    C,
    D,
    Side,
    applied,
    make_ready,
    sent,
    shards,
    store,
    talk,
    update,
)

NOTHING = applied().to_bytes()


def asking() -> Side:
    """Return a peer that has just begun to compare with the others."""
    around = Around(A, B, C)
    side = Side(A, around, store(chunks=range(2)))
    side.tick(NOW)
    return side


def compares(side: Side) -> list[Call]:
    return [call for call in side.calls if isinstance(call.message, Compare)]


def to(side: Side, peer: bytes) -> Call:
    (call,) = [call for call in compares(side) if call.peer == peer]
    return call


def test_every_owner_and_holder_is_asked_for_all_shards_in_common() -> None:
    around = Around(A, B, C)
    around.ready_at[2] = [A, D]  # D hands it over
    side = Side(A, around, store(chunks=range(2)))
    side.tick(NOW)
    assert [call.peer for call in compares(side)] == [B, C, D]
    for peer, wanted in ((B, [0, 1, 2, 3]), (C, [0, 1, 2, 3]), (D, [2])):
        question = to(side, peer).message
        assert isinstance(question, Compare)
        assert unpacked(question.shards, SHARDS).tolist() == wanted
        assert question.marks == [applied(0, 1).digest for _ in wanted]


def test_one_question_at_a_time_and_then_a_pause() -> None:
    side = asking()
    side.tick(NOW + 0.5)
    assert len(side.calls) == 2  # both are still open
    make_ready(side.core.replicas)
    side.answer(to(side, B), MESSAGES[-1], NOW + 0.5)
    side.answer(to(side, C), MESSAGES[-1], NOW + 0.5)
    side.tick(NOW + 0.5 + SETTINGS.compare_every - 0.01)
    assert side.calls == []
    side.tick(NOW + 0.5 + SETTINGS.compare_every)
    assert [call.peer for call in side.calls] == [B, C]


@pytest.mark.parametrize(
    ("took", "hurries", "pause"),
    [
        (0.1, False, SETTINGS.compare_every),
        (1.0, False, 8.0),
        (SETTINGS.call_timeout, False, SETTINGS.compare_every),  # or reports would be old
        (0.1, True, SETTINGS.hurry_every),
        (0.3, True, 2.4),
        (1.0, True, SETTINGS.compare_every),
        (SETTINGS.call_timeout, True, SETTINGS.word_counts - 2 * SETTINGS.call_timeout),
    ],
)
def test_where_answers_take_long_the_pause_is_longer(
    took: float, hurries: bool, pause: float
) -> None:
    side, answered = asking(), NOW + took
    if not hurries:
        make_ready(side.core.replicas)
    there = Side(B, Around(A, B), store(chunks=range(2)))
    side.answer(to(side, B), sent(there.answers.to(to(side, B).message)), answered)
    side.calls.clear()
    side.tick(answered + pause - 0.01)
    assert [call.peer for call in compares(side) if call.peer == B] == []
    side.tick(answered + pause)
    assert [call.peer for call in compares(side) if call.peer == B] == [B]


@pytest.mark.parametrize("shows", [False, True])
def test_who_was_silent_or_shows_other_chunks_is_asked_as_usual(shows: bool) -> None:
    side, answered = asking(), NOW + 1.0
    make_ready(side.core.replicas)
    if shows:
        there = Side(B, Around(A, B), store(chunks=range(2)))
        side.answer(to(side, B), sent(there.answers.to(to(side, B).message)), answered)
        side.core.differs(B, answered)
    else:
        side.answer(to(side, B), None, answered)
    side.calls.clear()
    side.tick(answered + SETTINGS.compare_every)
    assert [call.peer for call in compares(side) if call.peer == B] == [B]


CALM = NOW + SETTINGS.calm_after + 1


def calm() -> tuple[Side, Side]:
    """Return two peers that have just compared with each other, and find nothing new."""
    around = Around(A, B)
    side, there = (Side(one, around, store(chunks=range(2))) for one in (A, B))
    make_ready(side.core.replicas)
    make_ready(there.core.replicas)
    for now in (NOW, CALM):
        for one, other, peer in ((side, there, B), (there, side, A)):
            one.tick(now)
            one.answer(to(one, peer), sent(other.answers.to(to(one, peer).message)), now)
    return side, there


def asks_at(side: Side, seconds: float) -> bool:
    side.tick(CALM + seconds - 0.01)
    assert compares(side) == []
    side.tick(CALM + seconds)
    return len(compares(side)) == 1


def test_while_nothing_changes_holders_compare_less_often() -> None:
    side, there = calm()
    assert asks_at(side, SETTINGS.calm_every)
    side.answer(
        to(side, B), sent(there.answers.to(to(side, B).message)), CALM + SETTINGS.calm_every
    )
    assert asks_at(side, 2 * SETTINGS.calm_every)


def test_who_takes_a_chunk_in_compares_as_usual_and_so_does_who_is_asked_by_it() -> None:
    side, there = calm()
    everything = shards(*range(SHARDS))
    question = Push(JOB, 7, packed(everything, SHARDS), LESSONS.parcel(7, everything))
    side.do(side.core.asked(1, D, question, CALM + 1), CALM + 1)
    assert side.store.sets([0])[0] == applied(0, 1, 7)
    assert asks_at(side, SETTINGS.compare_every)
    answer = there.answers.to(to(side, B).message)
    assert isinstance(answer, Compared)
    assert answer.is_different
    assert compares(there) == []
    for stranger in (C, A):
        assert compares(there) == []
        there.core.differs(stranger, CALM + SETTINGS.compare_every)
        there.tick(CALM + SETTINGS.compare_every)
    assert len(compares(there)) == 1


def test_who_learns_that_another_has_more_compares_as_usual() -> None:
    side, there = calm()
    there.store.apply([update(7, *range(SHARDS))])
    assert asks_at(side, SETTINGS.calm_every)
    later = CALM + SETTINGS.calm_every
    side.answer(to(side, B), sent(there.answers.to(to(side, B).message)), later)
    side.calls.clear()  # what it fetches from there does not come
    side.tick(later + SETTINGS.compare_every)
    assert len(compares(side)) == 1


def test_after_others_came_or_went_all_compare_as_usual() -> None:
    side, _ = calm()
    side.around.ready_at[2] = [A, B, C]
    side.around.changes += 1
    side.tick(CALM + 1)
    assert [call.peer for call in compares(side)] == [C]
    side.calls.clear()
    side.tick(CALM + SETTINGS.compare_every)
    assert [call.peer for call in compares(side)] == [B]


@pytest.mark.parametrize("state", [ReplicaState.SYNCING, ReplicaState.DRAINING])
def test_who_catches_up_or_hands_over_asks_more_often(state: ReplicaState) -> None:
    side = asking()
    if state is ReplicaState.DRAINING:
        make_ready(side.core.replicas)
        side.around.capacities = dict.fromkeys([B, C, D], 1)
        side.around.changes += 1
        side.do(side.core.leave(NOW), NOW)
    begins = NOW + (SETTINGS.linger if state is ReplicaState.DRAINING else 0)
    side.answer(to(side, B), None, NOW)
    if state is ReplicaState.DRAINING:
        side.tick(NOW + SETTINGS.hurry_every)
        assert [call.peer for call in side.calls if call.peer == B] == []  # it keeps them longer
        side.tick(begins)
        side.answer(to(side, B), None, begins)
    side.tick(begins + SETTINGS.hurry_every - 0.01)
    assert [call.peer for call in side.calls if call.peer == B] == []
    side.tick(begins + SETTINGS.hurry_every)
    assert [call.peer for call in side.calls if call.peer == B] == [B]


def test_who_cannot_be_reached_is_asked_when_he_can() -> None:
    around = Around(A, B, C)
    around.unreachable = {B}
    side = Side(A, around, store())
    side.tick(NOW)
    assert [call.peer for call in side.calls] == [C]
    around.unreachable = set()
    side.tick(NOW + 1)
    assert [call.peer for call in side.calls] == [C, B]


def test_an_answer_becomes_evidence() -> None:
    side = asking()
    call, other = to(side, B), store([0, 1, 2], range(2))
    other.apply([update(7, 1), update(8, 2, job=OTHER_JOB)])
    there = Side(B, Around(A, B, C), other)
    side.answer(call, sent(there.answers.to(call.message)), NOW + 1)
    both = applied(0, 1)
    assert [side.core.reports.of(B, shard) for shard in range(SHARDS)] == [
        PeerReport(ReplicaState.SYNCING, both, NOW),
        PeerReport(ReplicaState.SYNCING, both | applied(7), NOW),
        PeerReport(ReplicaState.SYNCING, both | applied(8, job=OTHER_JOB), NOW),
        PeerReport(ReplicaState.ABSENT, applied(), NOW),
    ]
    assert side.around.trusted[0] == B
    assert side.around.suspected == []


def test_only_shards_that_the_store_holds_are_asked_for() -> None:
    side = Side(A, Around(A, B, C), store([2]))
    for hold in side.core.tick(NOW):
        if isinstance(hold, Call):  # the rest is not carried out yet
            assert isinstance(hold.message, Compare)
            assert unpacked(hold.message.shards, SHARDS).tolist() == [2]
            assert hold.message.marks == [applied().digest]


def test_nobody_is_asked_as_long_as_nothing_is_held() -> None:
    side = Side(A, Around(A, B, C))
    actions = side.core.tick(NOW)
    assert [action for action in actions if isinstance(action, Call)] == []
    side.do(actions, NOW)
    assert side.store.shards.tolist() == [0, 1, 2, 3]
    side.tick(NOW + 1)
    assert [call.peer for call in compares(side)] == [B, C]


def lie(**changed: object) -> Compared:
    fields = {"states": b"rrrr", "which": [-1] * SHARDS, "sets": []} | changed
    return Compared(**fields)  # type: ignore[arg-type]


LIES = {
    "none in time": None,
    "of another kind": Pushed(b""),
    "of a third kind": Offered(b"", b"", b""),
    "too few states": lie(states=b"rrr"),
    "too many states": lie(states=b"rrrrr"),
    "no such state": lie(states=b"rrrx"),
    "states that are no text": lie(states=b"rrr\xff"),
    "too few sets": lie(which=[-1] * 3),
    "too many sets": lie(which=[-1] * 5),
    "a set that is not there": lie(which=[0] * 4),
    "a set before the first": lie(which=[-3] * 4, sets=[NOTHING]),
    "parts of a set that is not there": lie(which=[0] * 4, sets=[NOTHING], parts=[b"", b""]),
    "a set that is none": lie(which=[0] * 4, sets=[b"none"]),
    "a set that nobody points to, and is none": lie(sets=[b""]),
    "a set of a job without a name": lie(which=[0] * 4, sets=[b"\x91\x92\xc4\x00\xc4\x00"]),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_leads_to_suspicion_and_nothing_else(name: str) -> None:
    side = asking()
    before = side.store.sets(range(SHARDS))
    call = to(side, B)
    side.done.clear()
    side.answer(call, LIES[name], NOW + 1)
    assert side.around.suspected == [B]
    assert side.around.trusted == []
    assert side.done == []
    assert [side.core.reports.of(B, shard) for shard in range(SHARDS)] == [None] * SHARDS
    assert side.store.sets(range(SHARDS)) == before
    side.tick(NOW + 20)
    assert to(side, B)  # and it is asked again, when its time has come


def test_any_kind_of_message_but_one_is_suspicious() -> None:
    for message in MESSAGES:
        side = asking()
        side.answer(to(side, B), message, NOW)
        assert side.around.suspected == ([] if isinstance(message, Compared | Refusal) else [B])


def test_a_refusal_is_no_silence_and_tells_nothing() -> None:
    side = asking()
    side.answer(to(side, B), Refusal("I am busy"), NOW + 1)
    assert (side.around.suspected, side.around.trusted) == ([], [B])
    assert side.core.reports.of(B, 0) is None
    side.tick(NOW + 1)
    assert [call.peer for call in side.calls] == [C]  # not at once
    side.tick(NOW + 20)
    assert to(side, B)


def test_what_a_peer_says_that_began_anew_meanwhile_does_not_count() -> None:
    side = asking()
    side.core.restarted(B)
    side.core.restarted(D)
    side.answer(to(side, B), lie(), NOW + 1)
    side.answer(to(side, C), lie(), NOW + 1)
    assert side.core.reports.of(B, 0) is None
    assert side.core.reports.of(C, 0) is not None
    assert side.around.suspected == []
    side.tick(NOW + 20)
    side.answer(to(side, B), lie(), NOW + 21)
    assert side.core.reports.of(B, 0) is not None


def test_times_of_who_is_no_partner_any_longer_are_forgotten() -> None:
    side = asking()
    for number in range(50):
        stranger = type(B)(number.to_bytes(32, "little"))
        side.around.ready_at[0] = [stranger]
        side.around.changes += 1
        side.tick(NOW + number)
        for call in list(side.calls):
            assert isinstance(call.message, Compare)
            count = len(call.message.marks)
            side.answer(call, lie(states=b"r" * count, which=[-2] * count), NOW + number)
    assert len(side.core._anti_entropy._asked) <= 4
    assert len(side.core._anti_entropy._by_parts) == 3


def test_two_that_have_the_same_have_nothing_more_to_say() -> None:
    around = Around(A, B, C)
    one, other = Side(A, around, store(chunks=range(3))), Side(B, around, store(chunks=range(3)))
    one.tick(NOW)
    assert [type(message) for message in talk(one, other, NOW)] == [Compare]
    answer = other.answers.to(Compare(b"\1", [applied(0, 1, 2).digest] * SHARDS))
    assert answer == Compared(b"ssss", [-1] * SHARDS, [])


def test_chunks_go_both_ways_in_one_round() -> None:
    around = Around(A, B, C)
    one, other = Side(A, around, store(chunks=range(3))), Side(B, around, store(chunks=[2, 3]))
    for now in (NOW, NOW + 2):
        for side, partner in ((one, other), (other, one)):
            side.tick(now)
            talk(side, partner, now)
    assert one.store.sets(range(SHARDS)) == other.store.sets(range(SHARDS))
    assert one.store.sets([0])[0].digest == applied(0, 1, 2, 3).digest
    assert one.store.digest() == other.store.digest()
    assert len(one.told(Apply)) == len(other.told(Apply)) == 1


def test_who_has_another_large_set_is_asked_by_parts_until_both_have_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(set_comparison, "MANY_JOBS", 0)
    side, now = asking(), NOW
    make_ready(side.core.replicas)
    other = store(chunks=range(2))
    there = Side(B, Around(A, B, C), other)
    other.apply([update(7, *range(SHARDS))])
    asked = list[int]()
    for pause in (0.0, SETTINGS.compare_every, SETTINGS.compare_every, 0.0):
        call = to(side, B)
        assert isinstance(call.message, Compare)
        assert call.message.parts is not None
        asked.append(len(call.message.parts))
        side.answer(call, sent(there.answers.to(call.message)), now)
        for fetch in [call for call in side.calls if isinstance(call.message, Fetch)]:
            side.answer(fetch, sent(there.answers.to(fetch.message)), now)
        now += pause
        side.tick(now)
    assert asked == [0, 1, 1, 0]  # named; told; fetched and found to be the same; at rest
    assert side.store.sets([0])[0] == applied(0, 1, 7)
    assert side.around.suspected == []


def test_sets_beyond_those_that_one_question_compares_by_parts_are_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(set_comparison, "MANY_JOBS", 0)
    monkeypatch.setattr(set_comparison, "MOST_IN_PARTS", 1)
    around = Around(A, B)
    side, other = Side(A, around, store(chunks=range(2))), store(chunks=range(2))
    side.store.apply([update(5, 0)])
    other.apply([update(7, *range(SHARDS))])
    make_ready(side.core.replicas)
    there = Side(B, around, other)
    side.tick(NOW)
    asked = list[list[int]]()
    while compares(side):  # one set after the other, without a pause
        call = to(side, B)
        assert isinstance(call.message, Compare)
        asked.append(unpacked(call.message.shards, SHARDS).tolist())
        side.answer(call, sent(there.answers.to(call.message)), NOW)
    assert asked == [[0, 1, 2, 3], [0, 1, 2, 3], [1, 2, 3]]
    assert side.around.suspected == []
    words = [side.core.reports.of(B, shard) for shard in range(SHARDS)]
    assert [word and word.chunks for word in words] == [applied(0, 1, 7)] * SHARDS
    assert side.core._anti_entropy._by_parts[B] == [1, 2, 3, 0]  # next time all at once


def test_who_names_large_sets_again_and_again_is_suspected() -> None:
    side = asking()
    side.answer(to(side, B), lie(which=[-2] * SHARDS), NOW)
    assert side.around.suspected == []
    assert side.core.reports.of(B, 0) is None
    side.answer(to(side, B), lie(which=[-2] * SHARDS), NOW)
    assert side.around.suspected == [B]
    assert [call for call in compares(side) if call.peer == B] == []


def some_jobs(first: int) -> Applied:
    """Return a set of a hundred jobs that nobody else has."""
    names = [number.to_bytes(16, "big") for number in range(first, first + 100)]
    return Applied({name: BitMap([0]) for name in names})


@pytest.mark.parametrize(
    ("apart", "is_suspected"),
    [(100, True), (1, False)],  # of sets that have most in common, it is in memory once
)
def test_who_reports_more_than_memory_is_meant_for_is_suspected(
    apart: int, is_suspected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anti_entropy, "_MOST_FOREIGN", int(2.5 * some_jobs(0).nbytes))
    side = asking()
    for shard in range(SHARDS - 1):  # the others wait for the next answer, which is wanted at once
        assert side.around.suspected == []
        answer = lie(
            states=b"r" * (SHARDS - shard),
            which=[0] + [-2] * (SHARDS - shard - 1),
            sets=[some_jobs(apart * shard).to_bytes()],
        )
        side.answer(to(side, B), answer, NOW)
    assert side.around.suspected == ([B] if is_suspected else [])
    kept = [side.core.reports.of(B, shard) is not None for shard in range(SHARDS)]
    assert kept == [True, True, not is_suspected, False]


def test_sets_of_one_answer_share_memory_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anti_entropy, "_MOST_FOREIGN", int(2.5 * some_jobs(0).nbytes))
    side = asking()
    sets = [some_jobs(shard).to_bytes() for shard in range(SHARDS)]
    side.answer(to(side, B), lie(which=list(range(SHARDS)), sets=sets), NOW)
    assert side.around.suspected == []


def test_who_is_no_partner_for_a_moment_begins_no_new_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(anti_entropy, "_MOST_FOREIGN", int(2.5 * some_jobs(0).nbytes))
    side = asking()
    for shard in range(SHARDS - 1):
        side.core._anti_entropy._foreign.clear()  # as while B shares no shard
        answer = lie(
            states=b"r" * (SHARDS - shard),
            which=[0] + [-2] * (SHARDS - shard - 1),
            sets=[some_jobs(100 * shard).to_bytes()],
        )
        side.answer(to(side, B), answer, NOW)
    assert side.around.suspected == [B]


def test_what_was_replaced_is_not_held_against_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anti_entropy, "_MOST_FOREIGN", int(2.5 * some_jobs(0).nbytes))
    side = asking()
    for number in range(6):
        now = NOW + number * SETTINGS.compare_every
        side.tick(now)
        sets = [some_jobs(100 * number).to_bytes()]
        side.answer(to(side, B), lie(which=[0, -1, -1, -1], sets=sets), now)
    assert side.around.suspected == []
    word = side.core.reports.of(B, 0)
    assert word is not None
    assert word.chunks == some_jobs(500)
