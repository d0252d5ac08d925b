"""A storage peer as a whole: ready, draining, dropped, released, told."""

from hashlib import sha256

import numpy as np
import pytest

from giaann_p2p.errors import DiskError
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.readiness import STRANGERS_COUNT
from giaann_p2p.swarm.wire.actions import Announce, Apply, Call, Drop, Hold, Leave, Reply
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.messages import AskProof, Fetched, Proof, Push, Pushed
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
    make_ready,
    shards,
    states,
    store,
    talk,
)
from tests.unit.swarm.replication.helpers_storage import (
    ALL,
    LINGER,
    drained,
    push,
    pushed,
    show,
    side_of,
    word,
)


def test_what_placement_gives_is_held_and_told() -> None:
    side = side_of(A, held=[])
    side.tick(NOW)
    assert [hold.shards.tolist() for hold in side.told(Hold)] == [ALL]
    assert side.store.shards.tolist() == ALL
    assert side.told(Announce)
    assert states(side.core.replicas) == "ssss"


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


@pytest.mark.parametrize(
    ("newcomers", "is_ready"),
    [
        ((), True),  # any replica that serves reads may lag behind another one a little
        ((C,), False),
        ((B, C), True),  # nobody is known
    ],
)
def test_a_strangers_empty_replica_is_not_caught_up_with(
    newcomers: tuple[Peer, ...], is_ready: bool
) -> None:
    side = side_of(A, B, C, held=ALL)
    side.around.newcomers = {*newcomers}
    side.around.ready_at = {shard: [B, C] for shard in ALL}
    side.around.syncing_at = {shard: [A] for shard in ALL}
    word(side, C, "r")
    word(side, B, "r01")
    side.tick(NOW)
    assert states(side.core.replicas) == ("rrrr" if is_ready else "ssss")


@pytest.mark.parametrize("are_ready", [False, True])
def test_before_known_holders_were_heard_strangers_do_not_count(are_ready: bool) -> None:
    side = side_of(A, B, C, held=ALL)
    side.around.newcomers = {C}
    side.around.ready_at = {shard: [B, C] if are_ready else [C] for shard in ALL}
    side.around.syncing_at = {shard: [B] for shard in ALL}
    longest = 2 * SETTINGS.patience + SETTINGS.offer
    for after, is_ready in ((0, False), (longest - 0.1, False), (longest, True)):
        word(side, C, "r", NOW + after)
        side.tick(NOW + after)
        assert states(side.core.replicas) == ("rrrr" if is_ready else "ssss")


def test_after_a_restart_of_all_a_strangers_empty_replica_does_not_count() -> None:
    side = side_of(A, B, C, D, held=ALL)
    side.around.newcomers = {D}
    side.around.ready_at = {shard: [D] for shard in ALL}
    word(side, D, "r")
    for peer in (B, C):
        word(side, peer, "s01")
    side.tick(NOW)
    assert states(side.core.replicas) == "ssss"


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


STRANGERS_WAIT = SETTINGS.patience + STRANGERS_COUNT


@pytest.mark.parametrize("claims", ["ready", "r01", "s01"])
@pytest.mark.parametrize(
    ("stands", "after", "is_ready"),
    [
        (False, STRANGERS_WAIT, True),
        (False, STRANGERS_WAIT - 0.1, False),  # it may deliver
        (True, STRANGERS_WAIT, False),
        (True, 100 * STRANGERS_WAIT, False),
    ],
)
def test_what_strangers_claim_and_never_deliver_does_not_keep_a_shard_from_beginning(
    claims: str, stands: bool, after: float, is_ready: bool
) -> None:
    side = side_of(A, B, C, D, chunks=(0,))
    side.around.newcomers = set() if stands else {D}
    if claims == "ready":
        side.around.ready_at = {shard: [D] for shard in ALL}
    side.tick(NOW)
    for peer, said in ((B, "s"), (C, "s"), (D, claims)):
        if said != "ready":
            word(side, peer, said, NOW + after)
    side.tick(NOW + after)
    assert states(side.core.replicas) == ("rrrr" if is_ready else "ssss")


def test_alone_it_waits_for_its_patience_and_begins() -> None:
    side = side_of(A, held=[])
    side.tick(NOW)
    side.tick(NOW + SETTINGS.patience)
    assert states(side.core.replicas) == "rrrr"


def test_what_it_takes_over_from_the_last_holder_waits_for_that_one_to_come_back() -> None:
    """Otherwise a reader would be told that rows do not exist, although they do."""
    side = Side(A, Around(A, B), store([]), rules=Rules(SHARDS, 1, 1))
    side.tick(NOW)
    side.tick(NOW + SETTINGS.patience)
    assert states(side.core.replicas) == "raar"
    del side.around.capacities[B]
    side.around.changes += 1
    gone = NOW + 100 * SETTINGS.patience
    for now in (gone, gone + SETTINGS.patience - 0.1):
        side.tick(now)
        assert states(side.core.replicas) == "rssr"
    side.tick(gone + SETTINGS.patience)
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


@pytest.mark.parametrize(
    ("said", "age", "chunks", "goes"),
    [
        ("r", 0, (), True),
        ("r0", 0, (), True),  # it has more than is here
        ("r", SETTINGS.word_counts, (), True),
        ("r", SETTINGS.word_counts + 0.1, (), False),  # said too long ago
        ("s", 0, (), False),  # it serves no reads yet
        ("d", 0, (), False),  # it goes, too
        ("r0", 0, (0,), False),  # what is here must be proved
    ],
)
def test_a_shard_without_chunks_goes_once_all_its_owners_are_ready(
    said: str, age: float, chunks: tuple[int, ...], goes: bool
) -> None:
    side, now = drained(chunks), NOW + 1
    for peer in (B, C):
        word(side, peer, "r0", now)
    word(side, D, said, now - age)
    side.tick(now)
    assert states(side.core.replicas) == ("aaaa" if goes else "dddd")
    assert show(side, now, *chunks) == []  # nobody is asked for a proof so soon


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


def test_a_peer_owns_its_shards_beside_newcomers_until_these_have_standing() -> None:
    side = side_of(B, C, D, chunks=(0, 1))  # its own record may not be there yet
    side.around.newcomers = {B, C, D}
    side.tick(NOW)
    make_ready(side.core.replicas)
    side.tick(NOW + 40)
    assert states(side.core.replicas) == "rrrr"
    side.around.newcomers = {B, C}  # nobody came or went, but D has been seen for long enough
    side.tick(NOW + 41)
    assert states(side.core.replicas) == "rrrr"  # still one of three, or fewer, that have standing
    side.around.newcomers = set()
    side.tick(NOW + 42)
    placement = Placement.of(dict.fromkeys([A, B, C, D], 1 << 30), SHARDS, 3)
    others = [n for n in ALL if A not in placement.owners(n)]
    assert side.core.replicas.all(ReplicaState.DRAINING).tolist() == others != []


def test_who_leaves_waits_for_one_with_standing_beside_the_owners() -> None:
    side = drained()
    e = Peer(b"E" * 32)
    side.around.capacities = {B: 1, C: 1 << 40, D: 1 << 40, e: 1 << 40}  # B owns no shard
    side.around.newcomers, side.around.changes = {C, D, e}, side.around.changes + 1
    side.tick(NOW)
    for peer in (C, D, e):
        word(side, peer, "r01", NOW + 40)
    for said in ("s01", "d01", "r0"):  # B is about to have them, or to drop them, or lacks a chunk
        word(side, B, said, NOW + 40)
        side.tick(NOW + 40)
        assert B not in show(side, NOW + 40, 0, 1)
        side.tick(NOW + 40)
        assert side.store.shards.tolist() == ALL
    word(side, B, "r01", NOW + 40)
    side.tick(NOW + 40)
    assert show(side, NOW + 40, 0, 1) == [B]
    assert len(side.store.shards) == 0


def test_who_leaves_hands_over_to_keepers_not_to_peers_without_disks() -> None:
    side = drained()
    e = Peer(b"E" * 32)
    side.around.capacities = {B: 1, C: 1 << 40, D: 1 << 40, e: 1 << 40}  # B owns no shard
    side.around.without_disk, side.around.changes = {C, D, e}, side.around.changes + 1
    side.tick(NOW)
    for peer in (C, D, e):
        word(side, peer, "r01", NOW + 40)
    side.tick(NOW + 40)
    assert {*show(side, NOW + 40, 0, 1)} == {C, D, e}
    side.tick(NOW + 40)
    assert side.store.shards.tolist() == ALL
    word(side, B, "r01", NOW + 40)
    side.tick(NOW + 40)
    assert show(side, NOW + 40, 0, 1) == [B]
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


def test_a_peer_takes_what_a_newer_edition_gives_it_and_keeps_what_it_has() -> None:
    """Placed anew with two replicas, A would own 0 and 2."""
    others = [Peer(sha256(bytes([0, 8, number])).digest()) for number in range(5)]
    around = Around(A, *others)
    side = Side(A, around, store([]), rules=Rules(SHARDS, 1, 1))
    side.tick(NOW)
    assert side.store.shards.tolist() == [1]
    around.rules = Rules(SHARDS, 2, 2, founded=1, first_quorum=1, edition=1)
    around.changes += 1
    side.tick(NOW + 1)
    assert side.store.shards.tolist() == [0, 1]
    assert not side.told(Drop)


@pytest.mark.parametrize(("there", "is_ready"), [((B, C), False), ((B, C, D), True)])
def test_with_more_replicas_than_at_first_more_owners_begin(
    there: tuple[Peer, ...], is_ready: bool
) -> None:
    """A chunk that two of the first three owners took may be at none of three of five."""
    around = Around(A, B, C, D, Peer(b"E" * 32))
    rules = Rules(SHARDS, 5, 3, founded=3, first_quorum=2, edition=1)
    side = Side(A, around, store(ALL, (0,)), rules=rules)
    side.tick(NOW)
    for peer in there:
        word(side, peer, "s", NOW + SETTINGS.patience)
    side.tick(NOW + SETTINGS.patience)
    assert states(side.core.replicas) == ("rrrr" if is_ready else "ssss")
