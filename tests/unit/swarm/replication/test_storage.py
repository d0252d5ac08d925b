"""A storage peer as a whole: ready, draining, dropped, released, told."""

from dataclasses import replace

import numpy as np
import pytest

from giaann_p2p.errors import DiskError
from giaann_p2p.model.delta import EMPTY
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.replication import pushes as module
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.actions import Announce, Apply, Call, Drop, Hold, Leave, Reply
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskProof, Fetched, Proof, Push, Pushed, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    MESSAGES,
    NOW,
    SETTINGS,
    SHARDS,
    A,
    Around,
    B,
    C,
    D,
    Side,
    accused,
    applied,
    make_ready,
    shards,
    states,
    store,
    talk,
    update,
)

ALL = list(range(SHARDS))
LINGER = SETTINGS.linger


def side_of(*members: bytes, held: list[int] | None = None, chunks: tuple[int, ...] = ()) -> Side:
    around = Around(*map(type(A), members))
    return Side(A, around, store(held if held is not None else ALL, chunks))


def word(side: Side, peer: bytes, text: str, asked: float = NOW, numbers: list[int] = ALL) -> None:
    """Let a peer have said something like "r012" of some shards."""
    for shard in numbers:
        said = PeerReport(ReplicaState(text[0]), applied(*map(int, text[1:])), asked)
        side.core.reports.heard(type(A)(peer), shard, said)


def show(side: Side, now: float, *chunks: int) -> list[bytes]:
    """Let all who are asked show that they hold what some chunks come to; return who was."""
    calls = [call for call in side.calls if isinstance(call.message, AskProof)]
    for call in calls:
        held = Answers(store(ALL, chunks), lambda shard: ReplicaState.READY, call.peer)
        side.answer(call, held.to(call.message), now)
    return [call.peer for call in calls]


def push(chunk: int, *numbers: int, job: bytes = JOB) -> Push:
    some = shards(*numbers)
    return Push(job, chunk, packed(some, SHARDS), LESSONS.parcel(chunk, some))


def pushed(*numbers: int) -> Pushed:
    return Pushed(packed(shards(*numbers), SHARDS))


def reply(side: Side, question: Push) -> Message:
    side.done.clear()
    side.do(side.core.asked(7, B, question, NOW), NOW)
    (said,) = side.told(Reply)
    assert said.ticket == 7
    return said.message


def test_what_placement_gives_is_held_and_told() -> None:
    side = side_of(A, held=[])
    side.tick(NOW)
    assert [hold.shards.tolist() for hold in side.told(Hold)] == [ALL]
    assert side.store.shards.tolist() == ALL
    assert side.told(Announce)
    assert states(side.core.replicas) == "ssss"


def test_a_push_is_taken_in_before_it_is_acknowledged() -> None:
    side = side_of(A)
    (apply,) = side.core.asked(7, B, push(1, 0, 2), NOW)
    assert isinstance(apply, Apply)
    side.store.apply(apply.unpacked())
    (said, *_) = side.core.stored(apply.number, None, NOW)
    assert said == Reply(7, pushed(0, 2))
    assert side.core.stored(apply.number, None, NOW) == []  # once


def test_a_push_is_taken_in_as_far_as_its_shards_are_held() -> None:
    side = side_of(A, B, C, held=[1, 2])
    assert reply(side, push(1, 0, 1, 3)) == pushed(1)
    assert side.store.sets(ALL) == {1: applied(1), 2: applied()}
    assert reply(side, push(1, 0, 3)) == pushed()
    assert side.told(Apply) == []
    assert reply(side, push(1, 1, 2)) == pushed(1, 2)  # again counts once
    assert side.store.sets(ALL) == {1: applied(1), 2: applied(1)}


@pytest.mark.parametrize("letter", "srd")
def test_a_push_is_taken_in_whatever_a_shard_is(letter: str) -> None:
    side = drained(()) if letter == "d" else side_of(A)
    if letter == "r":
        make_ready(side.core.replicas)
    assert states(side.core.replicas) == 4 * letter
    assert reply(side, push(1, *ALL)) == pushed(*ALL)


BAD_PUSHES = {
    "no shards": Push(JOB, 1, b"", b""),
    "shards of another form": Push(JOB, 1, b"\3", b""),
    "no parcel": Push(JOB, 1, packed(shards(1), SHARDS), b"none"),
    "half a parcel": Push(JOB, 1, packed(shards(1), SHARDS), LESSONS.parcel(1, shards(1))[:-1]),
    "no job": Push(b"", 1, packed(shards(1), SHARDS), LESSONS.parcel(1, shards(1))),
    "a chunk below 0": Push(JOB, -1, packed(shards(1), SHARDS), LESSONS.parcel(1, shards(1))),
    "a chunk too high": Push(JOB, 1 << 32, packed(shards(1), SHARDS), LESSONS.parcel(1, shards(1))),
}


@pytest.mark.parametrize("name", BAD_PUSHES)
def test_a_push_of_nonsense_is_refused(name: str) -> None:
    side = side_of(A)
    assert isinstance(reply(side, BAD_PUSHES[name]), Refusal)
    assert side.store.sets([1]) == {1: applied()}


def test_a_push_of_a_job_too_many_is_refused_and_other_jobs_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Strangers can name any number of jobs, and no chunk is ever taken back."""
    monkeypatch.setattr(module, "MOST_BEGUN", 2)
    side = side_of(A)
    assert reply(side, push(1, *ALL)) == pushed(*ALL)
    other, third = b"another job....1", b"another job....2"
    assert reply(side, push(1, 0, 1, job=other)) == pushed(0, 1)
    before = side.store.sets(ALL)
    said = reply(side, push(1, 1, 2, job=third))  # shard 2 would have room
    assert isinstance(said, Refusal)
    assert "have chunks of 2 jobs and take no new job" in said.reason
    assert not said.is_busy
    assert side.store.sets(ALL) == before
    assert reply(side, push(1, 2, job=third)) == pushed(2)
    assert reply(side, push(2, *ALL)) == pushed(*ALL)
    assert reply(side, push(1, 0, 1, job=other)) == pushed(0, 1)  # again


def test_a_job_of_which_all_is_withdrawn_makes_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_BEGUN", 1)
    side = side_of(A)
    other = b"another job....1"
    for number in (1, 2):
        assert reply(side, push(number, *ALL)) == pushed(*ALL)
    for number in (1, 2):
        assert isinstance(reply(side, push(1, *ALL, job=other)), Refusal)
        side.store.apply([update(number, *ALL)._replace(chunk=number | WITHDRAWN)])
    assert reply(side, push(1, *ALL, job=other)) == pushed(*ALL)


def test_a_push_of_more_than_a_chunk_can_add_is_refused() -> None:
    side, count = side_of(A), 64 * SPEC.max_tokens + 1
    ones, none = np.ones(count, np.int64), np.zeros(count + 1, np.int64)
    neurons = np.arange(1, count + 1, dtype=np.uint64)
    bomb = replace(EMPTY, concept=neurons, feature=neurons, count=ones, row_starts=none)
    said = reply(side, Push(JOB, 1, packed(shards(1), SHARDS), encode(bomb)))
    assert said == Refusal("neurons: 5121 is above the limit of 5120")


def test_a_push_that_the_store_fails_to_take_in_is_refused() -> None:
    side = side_of(A)
    (apply,) = side.core.asked(7, B, push(1, 0), NOW)
    assert isinstance(apply, Apply)
    assert side.core.stored(apply.number, DiskError("the disk is full"), NOW)[0] == Reply(
        7, Refusal("the disk is full")
    )


def test_a_shard_is_taken_that_fits_into_the_memory_that_is_given() -> None:
    assert side_of(A).core._downloads._most == (1 << 30) // 9


def test_rows_of_other_shards_in_a_push_do_not_count() -> None:
    side = side_of(A)
    everything = LESSONS.parcel(1, shards(*ALL))
    assert reply(side, Push(JOB, 1, packed(shards(2), SHARDS), everything)) == pushed(2)
    assert side.store.content(2).digest == store(chunks=[1]).content(2).digest
    assert side.store.content(0).digest == store().content(0).digest


@pytest.mark.parametrize(
    ("said", "at", "is_ready"),
    [
        ("r01", NOW, True),
        ("d0", NOW, True),
        ("r012", NOW, False),
        ("s01", NOW, False),
        ("r01", NOW - SETTINGS.word_counts, True),
        ("r01", NOW - SETTINGS.word_counts - 0.1, False),  # it may have more by now
    ],
)
def test_a_replica_is_ready_when_it_has_caught_up(said: str, at: float, is_ready: bool) -> None:
    side = side_of(A, B, C, chunks=(0, 1))
    word(side, B, said, at)
    side.tick(NOW)
    assert states(side.core.replicas) == ("rrrr" if is_ready else "ssss")
    assert (side.told(Announce)[-1].ready.tolist() == ALL) is is_ready


def test_each_shard_is_ready_by_itself() -> None:
    side = side_of(A, B, C, chunks=(0,))
    word(side, B, "r0", numbers=[1, 2])
    word(side, B, "r01", numbers=[3])
    side.tick(NOW)
    assert states(side.core.replicas) == "srrs"
    news = side.told(Announce)[-1]
    assert (news.ready.tolist(), news.syncing.tolist(), news.leaving) == ([1, 2], [0, 3], False)


@pytest.mark.parametrize(
    ("said", "after", "ready_elsewhere", "is_ready"),
    [
        ("s", SETTINGS.patience, False, True),
        ("s", SETTINGS.patience - 0.1, False, False),  # a ready one may come back
        ("s", SETTINGS.patience, True, False),  # there is one
        ("a", SETTINGS.patience, False, False),  # no quorum
        ("s01", SETTINGS.patience, False, False),  # get that first
    ],
)
def test_where_nobody_is_ready_a_quorum_begins(
    said: str, after: float, ready_elsewhere: bool, is_ready: bool
) -> None:
    side = side_of(A, B, C, chunks=(0,))
    if ready_elsewhere:
        side.around.ready_at = {shard: [D] for shard in ALL}
    side.tick(NOW)
    word(side, B, said, NOW + after)
    side.tick(NOW + after)
    assert states(side.core.replicas) == ("rrrr" if is_ready else "ssss")


def test_alone_it_waits_for_its_patience_and_begins() -> None:
    side = side_of(A, held=[])
    side.tick(NOW)
    side.tick(NOW + SETTINGS.patience)
    assert states(side.core.replicas) == "rrrr"


def begins_beside_a_cold_copy(*having: Peer, seconds: float) -> str:
    """Return the states of shards that A alone owns, so long after it first heard of copies."""
    side = side_of(A, held=[])
    side.around.cold_at = {0: [*having]}
    side.around.unreachable = {D}
    begun = NOW + SETTINGS.patience
    for now in (NOW, begun, begun + seconds):
        side.tick(now)
    return states(side.core.replicas)


def test_a_shard_of_which_another_has_a_cold_copy_waits_for_it_to_be_offered() -> None:
    waits = SETTINGS.patience + SETTINGS.offer
    assert begins_beside_a_cold_copy(B, seconds=waits - 1) == "srrr"
    assert begins_beside_a_cold_copy(D, B, seconds=waits - 1) == "srrr"


def test_but_not_for_ever_nor_for_who_does_not_answer_nor_for_its_own() -> None:
    waits = SETTINGS.patience + SETTINGS.offer
    assert begins_beside_a_cold_copy(B, seconds=waits) == "rrrr"
    assert begins_beside_a_cold_copy(D, seconds=0) == "rrrr"
    assert begins_beside_a_cold_copy(A, seconds=0) == "rrrr"
    assert begins_beside_a_cold_copy(seconds=0) == "rrrr"


def test_a_cold_copy_that_is_offered_is_waited_for_no_longer() -> None:
    side = side_of(A, held=[])
    side.around.cold_at = {0: [B]}
    begun = NOW + SETTINGS.patience
    for now in (NOW, begun):
        side.tick(now)
    assert states(side.core.replicas) == "srrr"
    word(side, B, "s", begun + 1, numbers=[0])
    side.tick(begun + 1)
    assert states(side.core.replicas) == "rrrr"


def test_who_comes_back_with_a_cold_copy_has_its_time_again() -> None:
    side = side_of(A, B, C, held=[])
    side.around.cold_at = {0: [D]}
    begun, waits = NOW + SETTINGS.patience, SETTINGS.patience + SETTINGS.offer
    side.tick(NOW)
    side.tick(begun)
    side.around.unreachable = {D}
    side.tick(begun + 1)
    side.around.unreachable = set()
    side.tick(begun + 2)
    for now, expected in ((begun + waits, "srrr"), (begun + 2 + waits, "rrrr")):
        word(side, B, "s", now)
        side.tick(now)
        assert states(side.core.replicas) == expected


def test_alone_without_the_directory_it_waits_however_long_it_takes() -> None:
    side = side_of(A, held=[])
    side.around.looked = None
    side.tick(NOW)
    side.tick(NOW + 1000)
    assert states(side.core.replicas) == "ssss"
    side.around.looked = found = NOW + 1000
    side.tick(found)
    side.tick(found + SETTINGS.patience - 0.1)
    assert states(side.core.replicas) == "ssss"  # others must have had time to be heard of
    side.tick(found + SETTINGS.patience)
    assert states(side.core.replicas) == "rrrr"


def test_without_the_directory_it_may_catch_up_with_whom_it_met() -> None:
    side = side_of(A, B, C, chunks=(0,))
    side.around.looked = None
    word(side, B, "r0")
    side.tick(NOW)
    assert states(side.core.replicas) == "rrrr"


def drained(chunks: tuple[int, ...] = (0, 1)) -> Side:
    """Return a peer that has all shards ready, which are others' from now on."""
    side = side_of(A, chunks=chunks)
    side.tick(NOW)
    make_ready(side.core.replicas)
    side.around.capacities = dict.fromkeys([B, C, D], 1 << 30)
    side.around.changes += 1
    side.do(side.core.leave(NOW), NOW)
    assert states(side.core.replicas) == "dddd"
    return side


@pytest.mark.parametrize(
    ("said", "age", "after", "goes"),
    [
        ("r01", 0, LINGER, True),
        ("r012", 0, LINGER, True),
        ("r01", 0, LINGER - 0.1, False),  # some do not know yet
        ("r0", 0, LINGER, False),
        ("s01", 0, LINGER, False),
        ("d01", 0, LINGER, False),
        ("a", 0, LINGER, False),
        ("r01", SETTINGS.word_counts, LINGER, True),
        ("r01", SETTINGS.word_counts + 0.1, LINGER, False),  # said too long ago
    ],
)
def test_a_shard_goes_when_all_its_owners_have_it(
    said: str, age: float, after: float, goes: bool
) -> None:
    side = drained()
    for peer in (B, C):
        word(side, peer, "r0123", NOW + after)
    word(side, D, said, NOW + after - age)
    side.tick(NOW + after)
    assert states(side.core.replicas) == "dddd"  # so far it is hearsay
    may_show = [B, C, D] if goes else [B, C] if said in ("r0", "r01") and after >= LINGER else []
    assert sorted(show(side, NOW + after, 0, 1, 2)) == may_show
    assert states(side.core.replicas) == ("aaaa" if goes else "dddd")
    assert bool(side.told(Leave)) is goes
    assert side.store.shards.tolist() == ([] if goes else ALL)
    assert (side.core.reports.of(D, 0) is None) is goes


def test_a_shard_goes_when_all_showed_it_though_one_is_silent_by_now() -> None:
    side, begun = drained(), NOW + LINGER
    later = begun + SETTINGS.word_counts + 1
    for peer in (C, D):
        word(side, peer, "r01", begun)
    word(side, B, "r0", begun)  # it lacks something yet
    side.tick(begun)
    assert sorted(show(side, begun, 0, 1)) == [C, D]
    for peer in (B, C):
        word(side, peer, "r01", later)
    side.tick(later)
    assert show(side, later, 0, 1) == [B]
    assert states(side.core.replicas) == "aaaa"


def test_only_what_is_covered_goes_and_then_the_peer() -> None:
    side = drained()
    for peer in (B, C, D):
        word(side, peer, "r01", NOW + 40, [1, 3])
    side.tick(NOW + 40)
    show(side, NOW + 40, 0, 1)
    assert [drop.shards.tolist() for drop in side.told(Drop)] == [[1, 3]]
    assert side.told(Leave) == []
    assert side.core.announcement().leaving
    assert side.core.announcement().ready.tolist() == [0, 2]  # it serves to the end
    for peer in (B, C, D):
        word(side, peer, "r01", NOW + 41)
    side.tick(NOW + 41)
    show(side, NOW + 41, 0, 1)
    assert states(side.core.replicas) == "aaaa"
    assert len(side.told(Leave)) == 1


@pytest.mark.parametrize("chunks", [(), (1, 2)])
def test_shards_are_ready_as_soon_as_all_is_here_that_others_have(chunks: tuple[int, ...]) -> None:
    """At once when that is heard, or when it is taken in; there is no tick in between."""
    side, other = side_of(A, B), Side(type(A)(B), Around(A, B), store(ALL, chunks))
    side.around.ready_at = {shard: [B] for shard in ALL}
    side.tick(NOW)
    other.tick(NOW)
    make_ready(other.core.replicas)
    assert states(side.core.replicas) == "ssss"
    talk(side, other, NOW + 0.1)
    assert states(side.core.replicas) == "rrrr"
    assert side.told(Announce)[-1].ready.tolist() == ALL


@pytest.mark.parametrize("numbers", [[2], [1, 2]])
def test_a_shard_stays_while_something_is_taken_into_it(numbers: list[int]) -> None:
    """What is acknowledged while others have what was here before would be lost with the shard."""
    side = drained()
    question = Push(JOB, 7, packed(shards(*numbers), SHARDS), LESSONS.parcel(7, shards(*numbers)))
    (deed,) = side.core.asked(1, B, question, NOW + LINGER - 1)
    assert isinstance(deed, Apply)
    for peer in (B, C, D):
        word(side, peer, "r01", NOW + 40)
    side.tick(NOW + 40)
    show(side, NOW + 40, 0, 1)
    assert side.store.shards.tolist() == numbers
    side.do([deed], NOW + 41)
    assert [reply.message for reply in side.told(Reply)] == [Pushed(question.shards)]
    side.tick(NOW + 41)
    assert side.store.shards.tolist() == numbers  # the others lack it
    for peer in (B, C, D):
        word(side, peer, "r017", NOW + 42)
    side.tick(NOW + 42)
    show(side, NOW + 42, 0, 1, 7)
    assert len(side.store.shards) == 0


def test_what_is_about_to_leave_memory_takes_nothing_in() -> None:
    """Its owners could not show that they hold what changes with every push."""
    side = drained()
    side.core.leaving = False
    question = push(7, 1)
    (said,) = side.core.asked(1, B, question, NOW + LINGER + 1)
    assert said == Reply(1, pushed())
    side.around.newcomers = {B}
    (deed,) = side.core.asked(2, B, question, NOW + LINGER + 1)
    assert isinstance(deed, Apply)


def test_beside_newcomers_nothing_leaves_memory() -> None:
    side = drained()
    side.core.leaving = False
    for newcomers, gone in (({B, C, D}, False), (set[Peer](), True)):
        side.around.newcomers = newcomers
        for peer in (B, C, D):
            word(side, peer, "r01", NOW + 40)
        side.tick(NOW + 40)
        show(side, NOW + 40, 0, 1)
        assert bool(side.told(Drop)) is gone


def test_who_leaves_waits_for_a_quorum_of_keepers() -> None:
    side = drained()
    side.around.newcomers = {C, D}
    for peer in (C, D):
        word(side, peer, "r01", NOW + 40)
    side.tick(NOW + 40)
    assert show(side, NOW + 40, 0, 1) == []
    word(side, B, "r01", NOW + 40)  # the only one of standing that there is
    side.tick(NOW + 40)
    show(side, NOW + 40, 0, 1)
    assert len(side.store.shards) == 0


def test_proofs_stand_while_who_leaves_misses_its_keeper() -> None:
    side, later = drained(), NOW + 40 + SETTINGS.word_counts + 1
    side.around.newcomers = {C, D}
    for peer in (C, D):
        word(side, peer, "r01", NOW + 40)
    word(side, B, "r0", NOW + 40)  # the only one of standing lacks something yet
    side.tick(NOW + 40)
    assert sorted(show(side, NOW + 40, 0, 1)) == [C, D]
    side.tick(later)  # nobody has reported for a while
    for peer in (B, C, D):
        word(side, peer, "r01", later)
    side.tick(later)
    assert show(side, later, 0, 1) == [B]  # the others have proved it already
    assert len(side.store.shards) == 0


def test_nothing_goes_without_evidence_unless_there_is_nothing_of_it() -> None:
    side = drained(())
    side.tick(NOW + LINGER)
    assert states(side.core.replicas) == "aaaa"
    side = drained()
    side.tick(NOW + 1000)
    assert states(side.core.replicas) == "dddd"


def test_a_shard_that_was_never_ready_goes_at_once_when_others_have_it() -> None:
    side = side_of(B, C, D, chunks=(0,))
    side.core.leaving = True
    side.tick(NOW)
    assert states(side.core.replicas) == "ssss"
    for peer in (B, C, D):
        word(side, peer, "r0")
    side.tick(NOW)
    show(side, NOW, 0)
    assert states(side.core.replicas) == "aaaa"


def test_who_begins_anew_has_said_nothing() -> None:
    side = side_of(A, B, C, chunks=(0,))
    word(side, B, "r0")
    side.core.restarted(B)
    side.tick(NOW)
    assert states(side.core.replicas) == "ssss"


def test_nothing_is_told_twice() -> None:
    side = side_of(A, B, C)
    side.tick(NOW)
    assert len(side.told(Announce)) == 1
    side.tick(NOW + 1)
    assert len(side.told(Announce)) == 1
    word(side, B, "r", numbers=[0])
    side.tick(NOW + 2)
    assert len(side.told(Announce)) == 2


def test_without_any_member_nothing_is_let_go() -> None:
    side = side_of(A, chunks=(0,))
    side.core.leaving = True
    side.around.capacities = {}
    side.tick(NOW)
    assert states(side.core.replicas) == "ssss"


def test_answers_to_nothing_are_nothing() -> None:
    side = side_of(A, B, C)
    side.tick(NOW)
    side.done.clear()
    for message in (*MESSAGES, None):
        assert side.core.answered(999, message, NOW) == []
    assert side.core.stored(999, DiskError("what"), NOW) == []
    assert side.around.suspected == []


@pytest.mark.parametrize("seed", range(5))
def test_whatever_comes_in_whatever_order_it_goes_on(seed: int) -> None:
    rng = np.random.default_rng(seed)
    said = [message for message in (*MESSAGES, None) if not isinstance(message, Fetched)]
    side, other = side_of(A, B, C, chunks=(0,)), Side(B, Around(A, B, C), store(chunks=range(9)))
    for step in range(60):
        now = NOW + step
        side.tick(now)
        for call in list(side.calls):
            chosen = rng.integers(0, len(said))
            if rng.random() < 0.3:
                side.answer(call, other.answers.to(call.message), now)
            elif rng.random() < 0.5:
                side.answer(call, said[chosen], now)  # but for a wrong delta, which passes here
    for now in range(2000, 2030):
        side.tick(now)
        for call in [call for call in side.calls if call.peer == C]:
            side.answer(call, None, now)
        talk(side, other, now)
    assert side.store.digest() == other.store.digest()
    assert {type(call) for call in side.told(Call)} == {Call}


def test_the_rules_of_the_swarm_say_how_many_begin() -> None:
    around = Around(A, B, C)
    side = Side(A, around, store(chunks=[0]), rules=Rules(len(ALL), quorum=3))
    side.tick(NOW)
    late = NOW + SETTINGS.patience
    word(side, B, "s", late)
    side.tick(late)
    assert states(side.core.replicas) == "ssss"
    word(side, C, "s0", late)
    side.tick(late)
    assert states(side.core.replicas) == "rrrr"


def test_what_was_said_before_a_shard_was_held_does_not_make_it_ready() -> None:
    """It was let go, and an answer came late; what was learned since went to others alone."""
    side = side_of(A, B, held=[])
    side.around.ready_at = {shard: [B] for shard in ALL}
    word(side, B, "r", asked=NOW - 1)
    for later in (0.0, 0.1, 1.0):
        side.tick(NOW + later)
        assert states(side.core.replicas) == "ssss"
    word(side, B, "r", asked=NOW + 1.1)
    side.tick(NOW + 1.2)
    assert states(side.core.replicas) == "rrrr"


def barring_c(side: Side) -> int:
    """Let C be barred from a shard that it owns with A and B; return which."""
    owners = Placement.of(side.around.capacities, SHARDS, 3).owners
    shard = next(shard for shard in ALL if {*owners(shard)} == {A, B, C})
    side.around.named_by = {peer: accused(C, shards(shard)) for peer in (A, B)}
    side.around.changes += 1
    return shard


def test_what_those_say_who_are_barred_makes_no_replica_ready() -> None:
    side = side_of(A, B, C, D, chunks=(0, 1))
    shard = barring_c(side)
    word(side, C, "r01")
    side.tick(NOW)
    assert side.core.replicas.excluded(shard) == {C}
    assert side.core.replicas.state(shard) is ReplicaState.SYNCING
    word(side, D, "r01")
    side.tick(NOW)
    assert side.core.replicas.state(shard) is ReplicaState.READY


def test_a_shard_that_only_those_have_ready_who_are_barred_begins_with_a_quorum() -> None:
    side = side_of(A, B, C, D, chunks=(0,))
    shard = barring_c(side)
    side.around.ready_at = {shard: [C]}
    side.tick(NOW)
    word(side, B, "s", NOW + SETTINGS.patience)
    side.tick(NOW + SETTINGS.patience)
    assert side.core.replicas.state(shard) is ReplicaState.READY


def test_who_is_barred_lets_go_of_nothing_that_others_do_not_show() -> None:
    side = side_of(A, B, C, D, chunks=(0,))
    owners = Placement.of(side.around.capacities, SHARDS, 3).owners
    shard = next(shard for shard in ALL if A in owners(shard))
    make_ready(side.core.replicas)
    side.tick(NOW)
    others = [peer for peer in owners(shard) if peer != A]
    side.around.named_by = {peer: accused(A, shards(shard)) for peer in others}
    side.around.changes += 1
    side.tick(NOW + 1)
    assert side.core.replicas.disputed == [shard]
    assert side.core.replicas.state(shard) is ReplicaState.DRAINING
    for later in range(1, 200):
        for peer in (B, C, D):
            word(side, peer, "r0", NOW + later)
        side.tick(NOW + later)
        for call in [call for call in side.calls if isinstance(call.message, AskProof)]:
            question = call.message
            assert isinstance(question, AskProof)
            many = len(unpacked(question.shards, SHARDS))
            side.answer(call, Proof(question.shards, [b"?" * 32] * many), NOW + later)
    assert shard in side.store.shards


def test_who_is_found_wrong_is_told_to_everybody() -> None:
    side = side_of(A, B, C, chunks=(0,))
    for peer in (B, C):
        word(side, peer, "r0")
    side.tick(NOW)
    later = NOW + SETTINGS.audit_every
    for peer in (B, C):
        word(side, peer, "r0", later)
    side.tick(later)
    before = side.told(Announce)[-1]
    assert before.wrong == {}
    right = Answers(store(ALL, [0]), lambda shard: ReplicaState.READY, B)
    for call in [call for call in side.calls if isinstance(call.message, AskProof)]:
        question = call.message
        assert isinstance(question, AskProof)
        if call.peer == B:
            side.answer(call, right.to(question), later)
        else:
            many = len(unpacked(question.shards, SHARDS))
            side.answer(call, Proof(question.shards, [b"?" * 32] * many), later)
    told = side.told(Announce)[-1].wrong
    assert {peer: some.tolist() for peer, some in told.items()} == {C: ALL}
