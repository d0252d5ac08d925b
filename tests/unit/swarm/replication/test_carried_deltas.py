"""Deltas that a peer carries for those who hold their shards."""

import threading
from itertools import combinations

import pytest

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import told as tree_of
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication import carried_deltas as module
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.carried_deltas import CarriedDeltas
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.actions import Reply
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import carried_size
from giaann_p2p.swarm.wire.messages import (
    Carried,
    Carry,
    Fetch,
    Fetched,
    Pushed,
    PushFrom,
    Refusal,
)
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.voucher import Notary
from tests.helpers_swarm import (
    AUTHORS,
    JOB,
    LAYOUT,
    LESSONS,
    LIMITS,
    NOW,
    OTHER_JOB,
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
)

WHOLE = shards(*range(SHARDS))
AUTHOR = AUTHORS[0].peer
MEMBERS = Listed()
CHECKS = DeltaChecks.of(SPEC, LAYOUT, Notary(SWARM_ID, LAYOUT, 1, MEMBERS).check, MEMBERS)


def carry(chunk: int = 1, some: Shards = WHOLE, job: bytes = JOB) -> Carry:
    seal = sealed(job, chunk)(some)
    return Carry(job, chunk, packed(some, SHARDS), LESSONS.parcel(chunk, some), seal)


def keep(kept: CarriedDeltas, chunk: int, sender: Peer = A, stands: bool = True) -> None:
    kept.keep(carry(chunk), sender, stands, NOW)


def chunks(kept: CarriedDeltas) -> list[int]:
    return [chunk for chunk in range(9) if kept.find(JOB, chunk)]


@pytest.mark.parametrize(
    "some",
    [shards(*few) for size in range(1, SHARDS + 1) for few in combinations(range(SHARDS), size)],
    ids=str,
)
@pytest.mark.parametrize("first", [0, 1])  # the first shard that is carried
def test_a_piece_is_what_the_author_would_have_cut_itself(some: Shards, first: int) -> None:
    """Also if only a part of the delta is carried."""
    if some[0] < first:
        return
    kept = CarriedDeltas(CHECKS, 1 << 30)
    kept.keep(carry(3, WHOLE[first:]), AUTHOR, True, NOW)
    piece = kept.piece(applied(3), some)
    assert piece is not None
    assert (piece.job, piece.chunk, piece.shards) == (JOB, 3, packed(some, SHARDS))
    assert piece.parcel == LESSONS.parcel(3, some)
    assert piece.seal == sealed(JOB, 3)(some)
    update = Update.received(JOB, 3, some, piece.parcel, LIMITS, piece.seal)
    CHECKS.check(update)
    assert tree_of(update.delta, some, LAYOUT, piece.seal).root == LESSONS.tree(3).root


def test_other_shards_chunks_and_questions_are_not_answered_from_it() -> None:
    kept = CarriedDeltas(CHECKS, 1 << 30)
    kept.keep(carry(3, WHOLE[1:3]), AUTHOR, True, NOW)
    assert kept.piece(applied(3), WHOLE[1:3])
    assert kept.piece(applied(3), WHOLE[:2]) is None
    assert kept.piece(applied(2), WHOLE[1:3]) is None
    assert kept.piece(applied(3, job=OTHER_JOB), WHOLE[1:3]) is None
    assert kept.piece(applied(2, 3), WHOLE[1:3]) is None
    assert kept.piece(applied(), WHOLE[1:3]) is None


def test_it_is_kept_for_some_minutes() -> None:
    kept = CarriedDeltas(TERMS, 1 << 30)
    keep(kept, 1)
    kept.expire(NOW + module._KEPT - 1)
    assert chunks(kept) == [1]
    kept.expire(NOW + module._KEPT)
    assert chunks(kept) == []


def test_the_oldest_make_room() -> None:
    kept = CarriedDeltas(TERMS, 16 * max(carried_size(carry(chunk).parcel) for chunk in range(9)))
    for chunk, sender in enumerate((A, B, A, B, C)):
        keep(kept, chunk, sender)
    assert chunks(kept) == [1, 2, 3, 4]
    keep(kept, 5, B)  # its own oldest one makes room
    assert chunks(kept) == [2, 3, 4, 5]


def test_strangers_push_out_only_each_others() -> None:
    kept = CarriedDeltas(TERMS, 16 * max(carried_size(carry(chunk).parcel) for chunk in range(9)))
    keep(kept, 0, A)
    for chunk in range(1, 8):
        keep(kept, chunk, Peer(bytes([chunk]) * 32), stands=False)
    assert chunks(kept) == [0, 6, 7]


@pytest.mark.parametrize("capacity", [0, 1 << 40])
def test_what_is_too_large_for_it_is_refused(
    capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CARRIED", carried_size(carry(1).parcel) - 1)
    kept = CarriedDeltas(TERMS, capacity or 8 * carried_size(carry(1).parcel) - 1)
    with pytest.raises(MessageError, match="too many to carry"):
        keep(kept, 1)
    assert chunks(kept) == []


def test_nobody_replaces_what_is_carried() -> None:
    kept = CarriedDeltas(TERMS, 1 << 30)
    keep(kept, 1)
    keep(kept, 1)  # its sender heard no answer
    with pytest.raises(MessageError, match=r"busy: .* carries other rows of this chunk"):
        kept.keep(carry(1, WHOLE[:2]), B, True, NOW)
    keep(kept, 1, B)  # another author of the same rows
    found = kept.find(JOB, 1)
    assert found is not None
    assert (found.sender, found.carry) == (A, carry(1))


def test_only_an_author_has_its_rows_carried() -> None:
    kept = CarriedDeltas(CHECKS, 1 << 30)
    with pytest.raises(MessageError, match="has not signed"):
        keep(kept, 1, D)
    keep(kept, 1, AUTHOR)


@pytest.mark.parametrize("parcel", [b"", b"no parcel", LESSONS.parcel(2, WHOLE)[:-1]])
def test_what_is_malformed_is_refused_at_once_or_when_it_is_unpacked(parcel: bytes) -> None:
    kept = CarriedDeltas(CHECKS, 1 << 30)
    good = carry(1)
    bad = Carry(JOB, 1, good.shards, parcel, good.seal)

    def carried() -> None:
        kept.keep(bad, AUTHOR, True, NOW)
        kept.piece(applied(1), WHOLE[:3])

    with pytest.raises(DamagedError):
        carried()


def test_other_rows_than_were_signed_are_not_passed_on() -> None:
    kept, shape = CarriedDeltas(CHECKS, 1 << 30), carry(1).seal.shape
    other = next(chunk for chunk in range(2, 50) if carry(chunk).seal.shape == shape)
    good, bad = carry(1), carry(other)
    kept.keep(Carry(JOB, 1, good.shards, bad.parcel, good.seal), AUTHOR, True, NOW)
    piece = kept.piece(applied(1), WHOLE)
    assert piece is not None  # its courier checks no signature
    with pytest.raises(MessageError, match="did not sign"):
        CHECKS.check(Update.received(JOB, 1, WHOLE, piece.parcel, LIMITS, piece.seal))


def test_threads_cut_pieces_at_the_same_time() -> None:
    kept = CarriedDeltas(CHECKS, 1 << 30)
    keep(kept, 3, AUTHOR)
    found = list[bytes]()

    def cut() -> None:
        piece = kept.piece(applied(3), WHOLE[:3])
        found.append(piece.parcel if piece else b"")

    threads = [threading.Thread(target=cut) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [LESSONS.parcel(3, WHOLE[:3])] * 8


# At a storage peer.


def side_of() -> Side:
    return Side(A, Around(A, B, C), store(WHOLE.tolist()), delta_checks=CHECKS)


def told(side: Side, source: Peer, *numbers: int, sender: Peer = AUTHOR) -> object:
    some = shards(*numbers)
    words = sealed(JOB, 1)(some).words
    question = PushFrom(JOB, 1, packed(some, SHARDS), source, words)
    side.do(side.core.asked(7, sender, question, NOW), NOW)
    (reply,) = side.told(Reply)
    return reply.message


def test_a_courier_takes_its_own_rows_when_it_is_told_and_not_before() -> None:
    side = side_of()
    assert side.core.carry(AUTHOR, carry(), NOW) == Carried()
    assert side.store.sets([0])[0] == applied()
    assert told(side, A, 0, 2) == Pushed(packed(shards(0, 2), SHARDS))
    assert side.calls == []
    assert side.store.sets(WHOLE.tolist()) == {
        0: applied(1), 1: applied(), 2: applied(1), 3: applied()
    }  # fmt: skip
    other = store(WHOLE.tolist(), [1])
    assert side.store.content(2).digest == other.content(2).digest


@pytest.mark.parametrize("some", [(), (0,)])
def test_it_says_so_if_it_does_not_carry_them(some: tuple[int, ...]) -> None:
    side = side_of()
    if some:
        side.core.carry(AUTHOR, carry(1, shards(*some)), NOW)
    said = told(side, A, 0, 2)
    assert isinstance(said, Refusal)
    assert "does not carry" in said.reason
    (purse,) = {*side.core.budget._authors.values()}
    assert purse.sentences.level(NOW) > purse.sentences.most - 64  # what was reserved is back


def test_others_fetch_from_a_courier_that_holds_none_of_their_shards() -> None:
    side = Side(A, Around(A, B, C), store([0]), delta_checks=CHECKS)
    answers = Answers(side.store, lambda shard: ReplicaState.READY, A, None, side.core.carried)
    fetch = Fetch(packed(shards(2, 3), SHARDS), applied(1).to_bytes(), 1 << 20, False)
    assert isinstance(answers.to(fetch), Refusal)
    assert side.core.carry(AUTHOR, carry(), NOW) == Carried()
    answer = answers.to(fetch)
    assert isinstance(answer, Fetched)
    (piece,) = answer.updates
    assert piece.parcel == LESSONS.parcel(1, shards(2, 3))
    assert answer.gone == applied().to_bytes()


def test_a_courier_refuses_in_words() -> None:
    said = side_of().core.carry(D, carry(), NOW)
    assert isinstance(said, Refusal)
    assert "has not signed" in said.reason
    said = side_of().core.carry(AUTHOR, Carry(JOB, 1, b"\x01", b"no parcel", carry().seal), NOW)
    assert isinstance(said, Refusal)
    assert "not a parcel" in said.reason


def test_a_tick_forgets_what_is_old() -> None:
    side = side_of()
    side.core.carry(AUTHOR, carry(), NOW)
    side.do(side.core.tick(NOW + module._KEPT), NOW + module._KEPT)
    assert side.core.carried.find(JOB, 1) is None
