"""Bringing chunks to their owners, against peers of every temper."""

import random

import pytest

from giaann_p2p.model.digest import digest
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.layout import MOST_SHARDS, Shards
from giaann_p2p.store.seal import MOST_WORDS, Seal
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.training import writer
from giaann_p2p.swarm.training.writer import FEW_BYTES, Committed, Writer
from giaann_p2p.swarm.wire.actions import Call, Reply
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    MOST_BYTES,
    Carried,
    Fetched,
    Piece,
    Push,
    Pushed,
    Refusal,
    encode,
)
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import (
    JOB,
    LESSONS,
    MESSAGES,
    NOW,
    OTHER_JOB,
    SHARDS,
    A,
    Around,
    B,
    C,
    D,
    Side,
    applied,
    sealed,
    shards,
    store,
)
from tests.unit.swarm.training.helpers_writer import ALL, NONE, Writing


def test_every_owner_gets_all_that_is_its_own_in_one_message() -> None:
    one = Writing(A, B, C, D)
    one.push()
    placement = one.around.placement(NOW)
    assert sorted(call.peer for call in one.calls) == [A, B, C, D]
    for call in one.calls:
        assert isinstance(call.message, Push)
        owned = placement.shards_of(call.peer)
        assert call.message == Push(
            JOB, 1, packed(owned, SHARDS), LESSONS.parcel(1, owned), sealed(JOB, 1)(owned)
        )
        assert call.timeout == 4.0


def test_a_chunk_is_committed_with_a_quorum_for_each_shard() -> None:
    one = Writing(A, B, C)
    one.push()
    one.answer(A, Pushed(ALL))
    assert one.committed == []
    one.answer(B, Pushed(packed(shards(0, 1, 2), SHARDS)))
    assert one.committed == []  # shard 3 has one
    assert len(one.writer) == 1
    one.answer(C, Pushed(packed(shards(3), SHARDS)))
    assert one.committed == [Committed(JOB, 1)]
    whole = shards(*range(SHARDS))
    seal = sealed(JOB, 1)(whole)
    assert one.sent == [3 * (len(LESSONS.parcel(1, whole)) + sum(map(len, seal)))]
    assert len(one.writer) == 0
    assert one.tick(NOW + 100) == []
    assert set(one.around.trusted) == {A, B, C}


def test_an_acknowledgement_counts_once() -> None:
    one = Writing(A, B)
    one.push()
    one.answer(A, Pushed(packed(shards(0, 1, 2), SHARDS)))
    for now, said in ((NOW + 10, shards()), (NOW + 20, shards(3))):
        assert one.tick(now) == [A]
        assert one.pushed(A) == [3]
        one.answer(A, Pushed(packed(said, SHARDS)), now)
    assert one.committed == []
    assert one.tick(NOW + 40) == []
    one.answer(B, Pushed(ALL))
    assert one.committed == [Committed(JOB, 1)]


@pytest.mark.parametrize("answer", [None, Refusal("full"), Pushed(NONE)])
def test_who_has_it_not_is_asked_again_later_and_later(answer: Message | None) -> None:
    one = Writing(A)
    one.push()
    now, pauses = NOW, []
    for _ in range(7):
        one.answer(A, answer, now)
        assert one.tick(now + 0.4) == []
        pause = 0.5
        while not one.tick(now + pause):
            pause *= 2
        pauses.append(pause)
        now += pause
    assert pauses == [0.5, 1, 2, 2, 2, 2, 2]
    assert one.around.suspected == ([A] * 7 if answer is None else [])


def test_who_owns_a_shard_by_then_is_asked() -> None:
    one = Writing(A, B)
    one.push()
    one.answer(A, Pushed(ALL))
    one.answer(B, None)
    one.around.capacities = dict.fromkeys([A, C], 1)
    assert one.tick(NOW + 0.1) == [C]
    one.answer(C, Pushed(ALL))
    assert one.committed == [Committed(JOB, 1)]


def test_without_members_it_waits() -> None:
    one = Writing()
    one.push()
    assert one.calls == []
    one.around.capacities = {A: 1, B: 1}
    assert one.tick(NOW + 1) == [A, B]


def test_chunks_go_side_by_side_and_none_twice() -> None:
    one = Writing(A, B)
    one.push(1)
    one.push(1)
    one.push(2)
    one.push(1, OTHER_JOB)
    assert len(one.calls) == 6
    assert len(one.writer) == 3
    assert one.writer.give_up(JOB, 1)
    assert not one.writer.give_up(JOB, 7)
    for _ in range(3):
        one.answer(A, Pushed(ALL))
        one.answer(B, Pushed(ALL))
    assert one.committed == [Committed(JOB, 2), Committed(OTHER_JOB, 1)]


LIES: dict[str, Message | None] = {
    "none in time": None,
    "no set": Pushed(b""),
    "a set of another form": Pushed(b"\3"),
    "a longer set": Pushed(b"\2\1\1"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_leads_to_suspicion_and_nothing_else(name: str) -> None:
    one = Writing(A, B)
    one.push()
    one.answer(A, Pushed(ALL))
    one.answer(B, LIES[name])
    assert (one.committed, one.around.suspected, one.around.trusted) == ([], [B], [A])
    assert one.tick(NOW + 1) == [B]


def test_shards_that_were_not_pushed_do_not_count() -> None:
    one = Writing(A, B)
    one.push()
    one.answer(A, Pushed(ALL))
    one.answer(B, Pushed(packed(shards(0, 1, 2), SHARDS)))
    assert one.tick(NOW + 1) == [B]
    assert one.pushed(B) == [3]
    one.answer(B, Pushed(ALL), NOW + 1)
    assert (one.committed, one.around.suspected) == ([], [B])


def test_any_kind_of_message_but_two_is_suspicious() -> None:
    for message in MESSAGES:
        one = Writing(A)
        one.push()
        one.answer(A, message)
        suspicious = not isinstance(message, Pushed | Refusal)
        assert one.around.suspected == ([A] if suspicious else [])


def test_what_is_too_large_for_one_message_goes_shard_by_shard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer, "_MOST_ROWS", 0)
    one = Writing(A, B)
    one.push()
    for shard in range(SHARDS):
        now = NOW + 10 * shard
        for peer in (A, B):
            assert one.committed == []
            assert one.pushed(peer) == [shard]
            (question,) = [call.message for call in one.calls if call.peer == peer]
            assert isinstance(question, Push)
            assert question.parcel == LESSONS.parcel(1, shards(shard))
            one.answer(peer, Pushed(packed(shards(shard), SHARDS)), now)
    assert one.committed == [Committed(JOB, 1)]
    assert one.around.suspected == []


@pytest.mark.parametrize(("less", "wanted"), [(0, [0, 1]), (1, [0])])
def test_what_is_too_large_is_halved_until_it_fits(
    monkeypatch: pytest.MonkeyPatch, less: int, wanted: list[int]
) -> None:
    chunk = 2  # it has something for each shard
    most = len(LESSONS.parcel(chunk, two := shards(0, 1))) + sealed(JOB, chunk)(two).size
    monkeypatch.setattr(writer, "_MOST_ROWS", most - less)
    one = Writing(A, B)
    one.push(chunk)
    assert one.pushed(A) == wanted
    one.answer(A, Pushed(packed(shards(0, 1, 2), SHARDS)))  # more than it was sent
    assert one.around.suspected == [A]


def test_what_is_cut_by_shards_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    most = len(LESSONS.parcel(1, two := shards(0, 1))) + sealed(JOB, 1)(two).size
    monkeypatch.setattr(writer, "_MOST_ROWS", most)
    one = Writing(A, B, C, D)
    sides = {peer: Side(peer, one.around, store()) for peer in (A, B, C, D)}
    one.push()
    now = NOW
    while not one.committed:
        for call in list(one.calls):
            side, question = sides[call.peer], call.message
            assert isinstance(question, Push)
            side.done.clear()
            side.do(side.core.asked(1, A, question, now), now)
            (said,) = side.told(Reply)
            one.answer(call.peer, said.message, now)
        now += 10
        assert now < NOW + 100
        one.tick(now)
    for shard in range(SHARDS):
        have = [s for s in sides.values() if 1 in s.store.sets([shard])[shard].of(JOB)]
        assert len(have) >= 2
        for side in have:
            assert side.store.content(shard).digest == digest(LESSONS.content(shard, [1]))


@pytest.mark.parametrize("seed", range(5))
def test_chunks_arrive_once_whatever_gets_lost(seed: int) -> None:
    rng = random.Random(seed)
    one = Writing(A, B, C, D)
    sides = {peer: Side(peer, one.around, store()) for peer in (A, B, C, D)}
    chunks = list(range(5))
    for step in range(300):
        now = NOW + step / 2
        if chunks and rng.random() < 0.3:
            one.push(chunks.pop(), now=now)
        one.tick(now)
        for call in list(one.calls):
            if rng.random() < 0.5:
                one.answer(call.peer, None, now)  # or another of the same peer
                continue
            side, question = sides[call.peer], call.message
            assert isinstance(question, Push)
            side.done.clear()
            side.do(side.core.asked(1, A, question, now), now)
            (said,) = side.told(Reply)
            one.calls.remove(call)
            lost = rng.random() < 0.3
            one.do(one.writer.answered(call.number, None if lost else said.message, now))
    assert sorted(act.chunk for act in one.committed) == list(range(5))
    for shard in range(SHARDS):
        taken = [side.store.sets([shard])[shard].of(JOB) for side in sides.values()]
        assert all(sum(chunk in some for some in taken) >= 2 for chunk in range(5))
        for side, some in zip(sides.values(), taken, strict=True):
            assert side.store.content(shard).digest == digest(LESSONS.content(shard, some))


def test_who_says_when_to_come_again_is_asked_then_and_is_as_good_as_ever() -> None:
    one = Writing(A, B)
    one.push()
    one.answer(A, Refusal("busy: retry in 7.0 s", 7.0))
    one.answer(B, Pushed(ALL))
    assert one.tick(NOW + 6.9) == []
    assert one.tick(NOW + 7.1) == [A]
    one.answer(A, Refusal("not now"), NOW + 7.1)
    assert one.tick(NOW + 7.7) == [A]  # as early as after a first refusal
    one.answer(A, Pushed(ALL), NOW + 7.7)
    assert one.committed == [Committed(JOB, 1)]
    assert one.around.suspected == []


# Newcomers own the shards; A held them before, and still does.


def _beside(newcomers: int = 3, few: int = FEW_BYTES) -> Writing:
    writing = Writing(*[B, C, D][:newcomers], few=few)
    writing.around.newcomers = {B, C, D}
    writing.around.beside_owners = {A: shards(*range(SHARDS))}
    writing.around.others_there = {A}
    return writing


def test_those_beside_the_owners_get_it_too() -> None:
    writing = _beside()
    writing.push()
    assert sorted(call.peer for call in writing.calls) == [A, B, C, D]


def test_newcomers_alone_commit_nothing_while_a_keeper_has_the_shard() -> None:
    writing = _beside()
    writing.push()
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL))
    assert writing.committed == []
    writing.answer(A, Pushed(ALL))
    assert len(writing.committed) == 1


def test_nor_do_they_where_the_keeper_is_full_until_it_has_room() -> None:
    writing = _beside()
    writing.push()
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL))
    writing.answer(A, Refusal("the store is full"))
    writing.tick(NOW + 10)
    assert writing.committed == []
    writing.answer(A, Pushed(ALL))
    assert len(writing.committed) == 1


def test_nor_do_they_where_the_keeper_cannot_be_reached() -> None:
    writing = _beside()
    writing.push()
    writing.around.unreachable = {A}
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL))
    writing.tick(NOW + 10)
    assert writing.committed == []


def test_keepers_that_went_away_are_named_once_all_else_is_there() -> None:
    writing = _beside()
    writing.around.away = [A]
    writing.push()
    writing.answer(B, Pushed(ALL))
    assert writing.writer.awaited(JOB, NOW) == []
    writing.answer(C, Pushed(ALL))
    assert writing.writer.awaited(JOB, NOW) == [A]
    assert writing.writer.awaited(b"another job.....", NOW) == []
    writing.answer(A, Pushed(ALL))
    assert writing.writer.awaited(JOB, NOW) == []


def test_nobody_away_is_waited_for_once_a_keeper_has_it() -> None:
    writing = _beside()
    writing.around.newcomers, writing.around.away = set(), [A]
    writing.push()
    for peer in (B, C):
        writing.answer(peer, Pushed(ALL))
    assert writing.committed == []  # who holds it beside them has it not
    assert writing.writer.awaited(JOB, NOW) == []


def test_strangers_beside_the_owners_delay_commits_for_a_minute_in_all() -> None:
    writing = _beside()
    writing.around.newcomers = {A}
    writing.push()
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL))
    assert writing.committed == []  # it may be a keeper that is not known yet
    writing.tick(NOW + 59)
    assert writing.committed == []
    writing.tick(NOW + 60)
    assert len(writing.committed) == 1
    writing.push(2, now=NOW + 100)
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL), NOW + 100)
    assert len(writing.committed) == 2


def test_several_strangers_beside_the_owners_delay_no_longer_than_one() -> None:
    writing, other = _beside(), type(A)(b"E" * 32)
    writing.around.newcomers = {A, other}
    writing.around.beside_owners[other] = shards(*range(SHARDS))
    writing.push()
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL))
    writing.tick(NOW + 59)
    assert writing.committed == []
    writing.tick(NOW + 60)
    assert len(writing.committed) == 1


def test_a_keeper_without_a_disk_is_none() -> None:
    writing = _beside()
    writing.around.without_disk = {A}
    writing.around.others_there = {A, type(A)(b"E" * 32)}
    writing.push()
    for peer in (A, B, C, D):
        writing.answer(peer, Pushed(ALL))
    assert writing.committed == []


def test_one_keeper_is_not_a_quorum() -> None:
    writing = _beside()
    writing.push()
    writing.answer(A, Pushed(ALL))
    assert writing.committed == []
    writing.answer(B, Pushed(ALL))
    assert len(writing.committed) == 1


def test_a_writer_that_takes_all_for_equal_heeds_who_holds_on_to_a_shard() -> None:
    writing = _beside()
    writing.around.newcomers = set()
    writing.push()
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL))
    assert writing.committed == []
    writing.answer(A, Pushed(ALL))
    assert len(writing.committed) == 1


@pytest.mark.parametrize("answer", [None, Refusal("the store is full")])
def test_but_does_not_wait_for_one_that_cannot_take_it(answer: Message | None) -> None:
    writing = _beside()
    writing.around.newcomers = set()
    writing.push()
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL))
    if answer is None:
        writing.around.unreachable = {A}
    writing.answer(A, answer)
    writing.tick(NOW + 1)
    assert len(writing.committed) == 1


def test_nor_for_one_that_is_told_to_fetch_and_is_busy() -> None:
    writing = _beside(few=0)
    writing.around.newcomers = set()
    writing.push(1)
    writing.answer(B, Carried())
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL))
    assert writing.committed == []
    writing.answer(A, Refusal("busy: later", 5.0))
    writing.tick(NOW + 1)
    assert len(writing.committed) == 1


def test_a_holder_may_become_a_keeper_after_it_took_the_chunk() -> None:
    writing = _beside()
    writing.around.beside_owners = {}  # A went away, and may come back
    writing.push()
    for peer in (B, C, D):
        writing.answer(peer, Pushed(ALL))
    assert writing.committed == []
    writing.around.newcomers = {C, D}  # B was seen for long enough
    writing.tick(NOW + 1)
    assert len(writing.committed) == 1


def test_where_no_keeper_has_the_shard_none_is_waited_for() -> None:
    writing = Writing(B, C, D)
    writing.around.newcomers = {B, C, D}
    writing.push()
    for peer in (B, C):
        writing.answer(peer, Pushed(ALL))
    assert len(writing.committed) == 1


@pytest.mark.parametrize("more", [0, 1])
def test_the_longest_push_fits_into_a_message(more: int) -> None:
    """So does the answer with what is fetched of it, which has the same rows and seal."""
    placement = Placement.of(dict.fromkeys([A, B], 1), MOST_SHARDS, 1)
    around = Around(A, B)
    around.rules = Rules(MOST_SHARDS, 1, 1)
    around.placement = lambda now: placement  # type: ignore[method-assign]
    seal = Seal(bytes(MOST_WORDS), bytes(1 << 17), bytes(1 << 18))
    most = writer._MOST_ROWS - seal.size
    own = len(placement.shards_of(A))

    def cut(numbers: Shards) -> bytes:
        return bytes(most + more if len(numbers) == own else most)

    one = Writer(around, 4.0)
    calls = one.push(JOB, WITHDRAWN - 2, cut, lambda _: seal, NOW)
    push = next(call.message for call in calls if isinstance(call, Call) and call.peer == A)
    assert isinstance(push, Push)
    assert len(push.parcel) == most
    assert len(unpacked(push.shards, MOST_SHARDS)) == (own // 2 if more else own)
    assert len(push.shards) == 1 + MOST_SHARDS // 8  # no set of shards is longer
    assert MOST_BYTES - (64 << 10) <= len(encode(push)) <= MOST_BYTES
    piece = Piece(JOB, WITHDRAWN - 2, push.shards, push.parcel, seal)
    assert len(encode(Fetched([piece], applied(1).to_bytes()))) <= MOST_BYTES
