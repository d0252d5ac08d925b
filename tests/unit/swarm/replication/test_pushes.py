"""Updates whose rows come from another owner."""

import pytest

from giaann_p2p.swarm.replication import pushes as module
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.carried_deltas import CarriedDeltas
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.actions import Apply, Call, Reply
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    Carry,
    FetchCarried,
    Fetched,
    Piece,
    Push,
    Pushed,
    PushFrom,
    Refusal,
)
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from giaann_p2p.swarm.wire.voucher import Notary, sealing, vouched
from tests.helpers_swarm import (
    AUTHORS,
    JOB,
    LESSONS,
    MESSAGES,
    NOW,
    RULES,
    SHARDS,
    SPEC,
    SWARM_ID,
    TERMS,
    A,
    Around,
    B,
    C,
    D,
    Listed,
    Side,
    applied,
    sealed,
    shards,
    store,
    update,
)

ALL = list(range(SHARDS))
HONEST, LIAR = AUTHORS[:2]


def side_of(terms: DeltaChecks = TERMS) -> Side:
    """Return peer A, with B and C beside it, holding all shards."""
    return Side(A, Around(A, B, C), store(ALL), delta_checks=terms)


def push_from(source: bytes, *numbers: int, chunk: int = 1) -> PushFrom:
    some = shards(*numbers)
    return PushFrom(
        JOB, chunk, packed(some, SHARDS), type(A)(source), sealed(JOB, chunk)(some).words
    )


def ask(side: Side, question: PushFrom, ticket: int = 7) -> None:
    side.do(side.core.asked(ticket, D, question, NOW), NOW)


def told(side: Side) -> Message:
    (reply,) = side.told(Reply)
    assert reply.ticket == 7
    return reply.message


def carried_by(peer: bytes, *chunks: int, numbers: list[int] = ALL) -> Answers:
    """Return the answers of a peer that carries some chunks for D, and holds nothing."""
    kept = CarriedDeltas(TERMS, 1 << 30)
    for chunk in chunks:
        some = shards(*numbers)
        parcel, seal = LESSONS.parcel(chunk, some), sealed(JOB, chunk)(some)
        kept.keep(Carry(JOB, chunk, packed(some, SHARDS), parcel, seal), D, True, NOW)
    none = store([])
    return Answers(none, lambda shard: ReplicaState.ABSENT, type(A)(peer), None, kept)


def test_the_rows_are_fetched_and_taken_in_before_they_are_acknowledged() -> None:
    side = side_of()
    ask(side, push_from(B, 0, 2))
    (call,) = side.calls
    assert call.peer == B
    assert isinstance(call.message, FetchCarried)
    assert unpacked(call.message.shards, SHARDS).tolist() == [0, 2]
    assert side.told(Reply) == []
    acts = side.core.answered(call.number, carried_by(B, 1).to(call.message), NOW)
    assert [act.ticket for act in acts if isinstance(act, Apply)] == [7]
    assert not [act for act in acts if isinstance(act, Reply)]
    side.do(acts, NOW)
    assert told(side) == Pushed(packed(shards(0, 2), SHARDS))
    assert side.store.sets(ALL) == {0: applied(1), 1: applied(), 2: applied(1), 3: applied()}


@pytest.mark.parametrize("is_fetched", [False, True])
def test_what_is_here_already_is_acknowledged_at_once_and_costs_nothing(is_fetched: bool) -> None:
    side, every = side_of(), packed(shards(*ALL), SHARDS)
    side.store.apply([update(1, *ALL)])
    push = Push(JOB, 1, every, b"not even a parcel", sealed(JOB, 1)(shards(*ALL)))
    for ticket in range(1000):  # more than any budget allows
        acts = side.core.asked(ticket, D, push_from(B, *ALL) if is_fetched else push, NOW)
        assert acts == [Reply(ticket, Pushed(every))]


@pytest.mark.parametrize("held", [ALL, [0, 1], []])
def test_what_is_here_in_part_is_taken_in(held: list[int]) -> None:
    side = Side(A, Around(A, B, C), store(held), delta_checks=TERMS)
    side.store.apply([update(1, *{0, 1}.intersection(held))])
    side.core.tick(NOW)  # it begins to hold the others, but the store does not yet
    assert side.core.replicas.held.tolist() == ALL
    acts = side.core.asked(7, D, push_from(B, *ALL), NOW)
    assert [act.peer for act in acts if isinstance(act, Call)] == [B]


@pytest.mark.parametrize("answer", [None, *MESSAGES])
def test_who_gets_no_rows_says_so_and_blames_nobody(answer: Message | None) -> None:
    side = side_of()
    ask(side, push_from(B, 0, 2))
    before = side.store.sets(ALL)
    (call,) = side.calls
    if answer == carried_by(B, 1).to(call.message):
        return
    side.answer(call, answer, NOW)
    said = told(side)
    assert isinstance(said, Refusal)
    assert not said.again
    assert side.store.sets(ALL) == before
    assert side.around.suspected == []


@pytest.mark.parametrize(
    ("sentences", "seconds"), [(64, 2.0), (128, 4.0), (1024, 32.7), (16_384, 524.2)]
)
def test_the_rows_of_a_larger_chunk_may_take_longer(sentences: int, seconds: float) -> None:
    side = side_of(TERMS._replace(rules=lambda: RULES._replace(sizes=(sentences,))))
    ask(side, push_from(B, 0, 2))
    assert [call.timeout for call in side.calls] == [pytest.approx(seconds, abs=0.1)]


def test_of_rows_that_came_in_part_only_these_are_acknowledged() -> None:
    side = side_of()
    ask(side, push_from(B, 0, 2))
    (call,) = side.calls
    piece = Piece(JOB, 1, packed(shards(2), SHARDS), LESSONS.parcel(1, shards(2)))
    side.answer(call, Fetched([piece], applied().to_bytes()), NOW)
    assert told(side) == Pushed(packed(shards(2), SHARDS))


def test_what_is_no_longer_accepted_when_it_comes_is_not_taken_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side = side_of()
    ask(side, push_from(B, 0, 2))
    (call,) = side.calls
    monkeypatch.setattr(side.core._pushes, "_taking", lambda shards, now: shards[shards != 2])
    side.answer(call, carried_by(B, 1).to(call.message), NOW)
    assert told(side) == Pushed(packed(shards(0), SHARDS))


def test_rows_are_fetched_from_storage_peers_of_the_swarm_alone() -> None:
    side = side_of()
    ask(side, push_from(D, 0))
    said = told(side)
    assert isinstance(said, Refusal)
    assert "knows no storage peer" in said.reason
    assert side.calls == []


def test_one_peer_has_only_so_many_rows_fetched_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_FETCHING", 2)
    side = side_of()
    for chunk in (1, 2, 3):
        ask(side, push_from(B, 0, chunk=chunk))
    assert len(side.calls) == 2
    said = told(side)
    assert isinstance(said, Refusal)
    assert "too many" in said.reason
    side.done.clear()
    side.answer(side.calls[0], None, NOW)
    side.done.clear()
    ask(side, push_from(B, 0, chunk=3))
    assert len([call for call in side.calls if isinstance(call, Call)]) == 2


@pytest.mark.parametrize(
    ("sender", "author", "lesson", "is_taken"),
    [
        (HONEST, HONEST, 1, True),
        (HONEST, HONEST, 2, False),  # other rows than were signed
        (HONEST, LIAR, 1, False),  # pushed at another author's expense
        (LIAR, LIAR, 1, False),  # all authors are disowned
    ],
)
def test_rows_are_checked_as_if_they_had_been_pushed(
    sender: Identity, author: Identity, lesson: int, is_taken: bool
) -> None:
    members = Listed(LIAR.peer)
    notary = Notary(SWARM_ID, lambda: RULES, 1, members)
    side = side_of(DeltaChecks(SPEC, lambda: RULES, notary.check, members))
    all_shards, tree = shards(*ALL), LESSONS.tree(1)
    told_all = packed(all_shards, SHARDS)
    seals = {
        one: sealing([vouched(one, SWARM_ID, JOB, 1, tree.root)], tree)(all_shards)
        for one in (sender, author)
    }
    question = PushFrom(JOB, 1, told_all, B, seals[sender].words)
    side.do(side.core.asked(7, sender.peer, question, NOW), NOW)
    (call,) = side.calls
    piece = Piece(JOB, 1, told_all, LESSONS.parcel(lesson, all_shards), seals[author])
    side.answer(call, Fetched([piece], applied().to_bytes()), NOW)
    assert isinstance(told(side), Pushed if is_taken else Refusal)
    assert (side.store.sets([1])[1] == applied(1)) is is_taken


def test_who_has_not_signed_cannot_have_rows_fetched() -> None:
    members = Listed()
    side = side_of(
        DeltaChecks(SPEC, lambda: RULES, Notary(SWARM_ID, lambda: RULES, 1, members).check, members)
    )
    ask(side, push_from(B, 0))  # by D, with an author's words
    said = told(side)
    assert isinstance(said, Refusal)
    assert "has not signed" in said.reason
    assert side.calls == []


def fetched(side: Side, *parts: list[int]) -> None:
    """Have the rows of chunk 1 come in some parts."""
    ask(side, push_from(B, *ALL))
    (call,) = side.calls
    pieces = [
        Piece(JOB, 1, packed(shards(*part), SHARDS), LESSONS.parcel(1, shards(*part)))
        for part in parts
    ]
    side.answer(call, Fetched(pieces, applied().to_bytes()), NOW)


def test_rows_are_charged_the_same_in_one_part_or_in_several() -> None:
    charged = []
    for parts in ([ALL], [ALL[:1], ALL[1:3], ALL[3:]]):
        side = side_of()
        fetched(side, *parts)
        assert told(side) == Pushed(packed(shards(*ALL), SHARDS))
        (purse,) = {*side.core.budget._authors.values()}
        charged.append(purse.sentences.most - purse.sentences.level(NOW))
    assert charged[0] == pytest.approx(charged[1])


def test_rows_that_come_twice_are_refused() -> None:
    """Their author would be charged for each, and could soon push nothing more."""
    side = side_of()
    fetched(side, ALL, ALL[1:])
    assert isinstance(told(side), Refusal)
