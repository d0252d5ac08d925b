"""Deltas that a peer carries for those who hold their shards."""

import struct
from itertools import combinations

import msgspec
import numpy as np
import pytest

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import UNSEALED, Tree
from giaann_p2p.store.seal import told as tree_of
from giaann_p2p.store.update import Update, anything
from giaann_p2p.swarm.replication import carried_deltas as module
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.carried_deltas import CarriedDeltas
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.actions import Reply
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import carried_size
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    Carried,
    Carry,
    Fetch,
    FetchCarried,
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
)

WHOLE = shards(*range(SHARDS))
AUTHOR = AUTHORS[0].peer
MEMBERS = Listed()
CHECKS = DeltaChecks(
    SPEC, lambda: RULES, Notary(SWARM_ID, lambda: RULES, 1, MEMBERS).check, MEMBERS
)


def carry(chunk: int = 1, some: Shards = WHOLE, job: bytes = JOB) -> Carry:
    seal = sealed(job, chunk)(some)
    return Carry(job, chunk, packed(some, SHARDS), LESSONS.parcel(chunk, some), seal)


def keep(kept: CarriedDeltas, chunk: int, sender: Peer = A, stands: bool = True) -> None:
    kept.keep(carry(chunk), sender, stands, NOW)


def chunks(kept: CarriedDeltas) -> list[int]:
    """Return the numbers of the chunks that are carried."""
    return sorted(chunk for half in kept._of.values() for _, _, chunk in half)


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
    piece = kept.piece(AUTHOR, JOB, 3, some)
    assert (piece.job, piece.chunk, piece.shards) == (JOB, 3, packed(some, SHARDS))
    assert piece.parcel == LESSONS.parcel(3, some)
    assert piece.seal == sealed(JOB, 3)(some)
    update = Update.received(JOB, 3, some, piece.parcel, LIMITS, piece.seal)
    CHECKS.check(update)
    assert tree_of(update.delta, some, LAYOUT, piece.seal).root == LESSONS.tree(3).root


@pytest.mark.parametrize("number", range(2 * SHARDS))
def test_a_piece_for_a_part_of_a_divided_shard_has_the_rows_of_all_of_it(number: int) -> None:
    """Its holder cannot verify the author's seal with less."""
    doubled = LAYOUT.with_shards(2 * SHARDS)
    rules = Rules(2 * SHARDS, founding_shards=SHARDS)
    assert rules.layout == doubled
    notary = Notary(SWARM_ID, lambda: rules, 1, MEMBERS)
    checks = DeltaChecks(SPEC, lambda: rules, notary.check, MEMBERS)
    everything, whole = shards(*range(2 * SHARDS)), shards(number % SHARDS)
    kept = CarriedDeltas(checks, 1 << 30)
    told = carry(3)
    kept.keep(
        msgspec.structs.replace(told, shards=packed(everything, 2 * SHARDS)), AUTHOR, True, NOW
    )
    piece = kept.piece(AUTHOR, JOB, 3, shards(number))
    assert piece.shards == packed(shards(number), 2 * SHARDS)
    assert piece.parcel == LESSONS.parcel(3, whole)
    assert piece.seal == sealed(JOB, 3)(whole)
    update = Update.received(JOB, 3, shards(number), piece.parcel, LIMITS, piece.seal)
    checks.check(update)


@pytest.mark.parametrize(
    ("author", "job", "chunk", "some"),
    [
        (AUTHOR, JOB, 3, WHOLE[:2]),
        (AUTHOR, JOB, 2, WHOLE[1:3]),
        (AUTHOR, OTHER_JOB, 3, WHOLE[1:3]),
        (A, JOB, 3, WHOLE[1:3]),
    ],
    ids=["other shards", "another chunk", "another job", "another sender"],
)
def test_what_is_not_carried_is_refused(author: Peer, job: bytes, chunk: int, some: Shards) -> None:
    kept = CarriedDeltas(CHECKS, 1 << 30)
    kept.keep(carry(3, WHOLE[1:3]), AUTHOR, True, NOW)
    assert kept.piece(AUTHOR, JOB, 3, WHOLE[1:3])
    with pytest.raises(MessageError, match="does not carry these rows"):
        kept.piece(author, job, chunk, some)


def test_it_is_kept_for_some_minutes() -> None:
    kept = CarriedDeltas(TERMS, 1 << 30)
    keep(kept, 1)
    kept.expire(NOW + module._KEPT - 1)
    assert chunks(kept) == [1]
    kept.expire(NOW + module._KEPT)
    assert chunks(kept) == []


@pytest.mark.parametrize(("seconds", "times"), [(module._UNPACKED - 1, 1), (module._UNPACKED, 2)])
def test_it_is_packed_again_after_some_seconds_and_unpacked_for_a_late_holder(
    monkeypatch: pytest.MonkeyPatch, seconds: float, times: int
) -> None:
    unpacked = counted_unpacking(monkeypatch)
    kept = CarriedDeltas(CHECKS, 1 << 30)
    kept.keep(carry(3), AUTHOR, True, NOW)
    early = kept.piece(AUTHOR, JOB, 3, WHOLE[:2])
    kept.expire(NOW + seconds)
    assert kept.piece(AUTHOR, JOB, 3, WHOLE[:2]) == early
    assert len(unpacked) == times


def counted_unpacking(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the list of what is unpacked from now on."""
    unpacked, decode = list[bytes](), module.decode

    def counted(parcel: bytes, limits: Limits) -> Delta:
        unpacked.append(parcel)
        return decode(parcel, limits)

    monkeypatch.setattr(module, "decode", counted)
    return unpacked


def size_of(chunk: int) -> int:
    one = carry(chunk)
    return carried_size(one.parcel, one.seal)


SIZE = max(map(size_of, range(9)))


def test_the_oldest_make_room() -> None:
    kept = CarriedDeltas(TERMS, 8 * 3 * SIZE)
    for chunk, sender in enumerate((A, B, A, B)):
        keep(kept, chunk, sender)
    assert chunks(kept) == [1, 2, 3]


def test_a_delta_that_replaces_its_senders_own_needs_no_more_room() -> None:
    kept = CarriedDeltas(TERMS, 8 * 2 * SIZE)
    for chunk in (1, 2, 2, 2):
        keep(kept, chunk)
    assert chunks(kept) == [1, 2]


def test_there_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 2)
    kept = CarriedDeltas(TERMS, 1 << 30)
    for chunk in range(4):
        keep(kept, chunk)
    assert chunks(kept) == [2, 3]


def test_strangers_push_out_only_each_others() -> None:
    kept = CarriedDeltas(TERMS, 8 * 2 * SIZE)
    keep(kept, 0, A)
    keep(kept, 8, B)
    for chunk in range(1, 8):
        keep(kept, chunk, Peer(bytes([chunk]) * 32), stands=False)
    assert chunks(kept) == [0, 6, 7, 8]


@pytest.mark.parametrize("capacity", [0, 1 << 40])
def test_what_is_too_large_for_it_is_refused(
    capacity: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CARRIED", size_of(1) - 1)
    kept = CarriedDeltas(TERMS, capacity or 8 * size_of(1) - 1)
    with pytest.raises(MessageError, match="too much for one carried delta"):
        keep(kept, 1)
    assert chunks(kept) == []


def test_nobody_replaces_what_another_has_carried() -> None:
    """Whoever guesses a chunk's name gains nothing."""
    kept = CarriedDeltas(TERMS, 1 << 30)
    keep(kept, 1, B)
    kept.keep(carry(1, WHOLE[:2]), A, True, NOW)
    assert kept.piece(B, JOB, 1, WHOLE).parcel == carry(1).parcel
    with pytest.raises(MessageError):
        kept.piece(A, JOB, 1, WHOLE)
    keep(kept, 1, A)  # but it replaces its own
    assert kept.piece(A, JOB, 1, WHOLE).parcel == carry(1).parcel
    assert chunks(kept) == [1, 1]


LYING = struct.Struct("<IIIIHH")  # the sizes in a parcel's head


@pytest.mark.parametrize("place", range(4))
def test_sizes_that_no_chunk_has_are_refused_before_any_room_is_made(place: int) -> None:
    kept, good = CarriedDeltas(CHECKS, 1 << 30), carry(1)
    sizes = [*LYING.unpack_from(good.parcel, 21)]
    sizes[place] = 1 << 30
    lie = good.parcel[:21] + LYING.pack(*sizes) + good.parcel[21 + LYING.size :]
    keep(kept, 2, AUTHOR)
    with pytest.raises(DamagedError):
        kept.keep(Carry(JOB, 1, good.shards, lie, good.seal), AUTHOR, True, NOW)
    assert chunks(kept) == [2]


def test_a_seal_of_shards_that_do_not_exist_is_refused() -> None:
    kept, good = CarriedDeltas(CHECKS, 1 << 30), carry(1)
    many = Tree({}, np.arange(1 << 16, dtype=np.uint16), bytes(16)).shape
    assert len(many) < 1000
    bad = Carry(JOB, 1, good.shards, good.parcel, good.seal._replace(shape=many))
    with pytest.raises(DamagedError, match="beyond the last"):
        kept.keep(bad, AUTHOR, True, NOW)
    bad = Carry(JOB, 1, good.shards, good.parcel, good.seal._replace(beside=bytes(16 * 9)))
    with pytest.raises(DamagedError, match="more branches than shards"):
        kept.keep(bad, AUTHOR, True, NOW)


def test_a_seal_takes_room_too() -> None:
    good = carry(1)
    plain = carried_size(good.parcel, UNSEALED)
    leaves = len(LESSONS.tree(1)._rank)
    assert carried_size(good.parcel, good.seal) == plain + good.seal.size + 400 * leaves


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
        kept.piece(AUTHOR, JOB, 1, WHOLE[:3])

    with pytest.raises(DamagedError):
        carried()


def test_what_is_malformed_is_unpacked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, good = CarriedDeltas(CHECKS, 1 << 30), carry(1)
    cut_off = Carry(JOB, 1, good.shards, good.parcel[:-1], good.seal)
    kept.keep(cut_off, AUTHOR, True, NOW)
    unpacked = counted_unpacking(monkeypatch)
    for seconds in range(0, 60, 20):
        with pytest.raises(DamagedError, match="checksum"):
            kept.piece(AUTHOR, JOB, 1, WHOLE[:3])
        kept.expire(NOW + seconds)
    assert len(unpacked) == 1


def test_other_rows_than_were_signed_are_not_passed_on() -> None:
    kept, shape = CarriedDeltas(CHECKS, 1 << 30), carry(1).seal.shape
    other = next(chunk for chunk in range(2, 50) if carry(chunk).seal.shape == shape)
    good, bad = carry(1), carry(other)
    kept.keep(Carry(JOB, 1, good.shards, bad.parcel, good.seal), AUTHOR, True, NOW)
    piece = kept.piece(AUTHOR, JOB, 1, WHOLE[:3])  # its courier checks no signature
    with pytest.raises(MessageError, match="did not sign"):
        CHECKS.check(Update.received(JOB, 1, WHOLE[:3], piece.parcel, LIMITS, piece.seal))


def test_pieces_are_cut_in_the_shards_of_the_delta_although_these_are_divided_meanwhile() -> None:
    """A thread may cut one for a question that came before."""
    rules = [Rules(SHARDS)]
    kept = CarriedDeltas(DeltaChecks(SPEC, lambda: rules[0], anything), 1 << 30)
    keep(kept, 3)
    rules[0] = Rules(4 * SHARDS, founding_shards=SHARDS)
    piece = kept.piece(A, JOB, 3, shards(0, 2))
    assert piece.shards == packed(shards(0, 2), SHARDS)
    assert piece.parcel == LESSONS.parcel(3, shards(0, 2))
    assert piece.seal == sealed(JOB, 3)(shards(0, 2))


# At a storage peer.


def side_of() -> Side:
    return Side(A, Around(A, B, C), store(WHOLE.tolist()), delta_checks=CHECKS)


def answers_of(side: Side) -> Answers:
    return Answers(side.store, lambda shard: ReplicaState.READY, side.me, None, side.core.carried)


def told(side: Side, *numbers: int) -> Message:
    """Tell the courier to take its own rows, and let it ask itself."""
    some = shards(*numbers)
    question = PushFrom(JOB, 1, packed(some, SHARDS), side.me, sealed(JOB, 1)(some).words)
    side.do(side.core.asked(7, AUTHOR, question, NOW), NOW)
    for call in list(side.calls):
        assert call.peer == side.me
        assert call.message == FetchCarried(JOB, 1, packed(some, SHARDS), AUTHOR)
        side.answer(call, answers_of(side).to(call.message), NOW)
    (reply,) = side.told(Reply)
    return reply.message


def test_a_courier_takes_its_own_rows_when_it_is_told_and_not_before() -> None:
    side = side_of()
    assert side.core.carry(AUTHOR, carry(), NOW) == Carried()
    assert side.store.sets([0])[0] == applied()
    assert told(side, 0, 2) == Pushed(packed(shards(0, 2), SHARDS))
    assert side.store.sets(WHOLE.tolist()) == {
        0: applied(1), 1: applied(), 2: applied(1), 3: applied()
    }  # fmt: skip
    other = store(WHOLE.tolist(), [1])
    assert side.store.content(2).digest == other.content(2).digest
    (kept,) = side.store.parcels(JOB, 1, shards(0, 2))
    assert kept.data == LESSONS.parcel(1, shards(0, 2))  # no more than it holds


@pytest.mark.parametrize("some", [(), (0,)])
def test_it_says_so_if_it_does_not_carry_them(some: tuple[int, ...]) -> None:
    side = side_of()
    if some:
        side.core.carry(AUTHOR, carry(1, shards(*some)), NOW)
    said = told(side, 0, 2)
    assert isinstance(said, Refusal)
    assert said.is_of_source
    (purse,) = {*side.core.budget._authors.values()}
    assert purse.sentences.level(NOW) > purse.sentences.most - 64  # not what was reserved


def test_others_fetch_from_a_courier_that_holds_none_of_their_shards() -> None:
    side = Side(A, Around(A, B, C), store([0]), delta_checks=CHECKS)
    fetch = FetchCarried(JOB, 1, packed(shards(2, 3), SHARDS), AUTHOR)
    assert isinstance(answers_of(side).to(fetch), Refusal)
    assert side.core.carry(AUTHOR, carry(), NOW) == Carried()
    answer = answers_of(side).to(fetch)
    assert isinstance(answer, Fetched)
    (piece,) = answer.updates
    assert piece.parcel == LESSONS.parcel(1, shards(2, 3))
    assert answer.gone == applied().to_bytes()


def test_what_is_carried_is_not_mixed_up_with_what_was_learned() -> None:
    """Otherwise replicas could get other rows by comparing than were pushed to their owners."""
    side = Side(A, Around(A, B, C), store(WHOLE.tolist(), [1]), delta_checks=CHECKS)
    other = Carry(JOB, 1, packed(WHOLE, SHARDS), LESSONS.parcel(2, WHOLE), carry(2).seal)
    assert side.core.carry(AUTHOR, other, NOW) == Carried()
    answer = answers_of(side).to(Fetch(packed(WHOLE, SHARDS), applied(1).to_bytes()))
    assert isinstance(answer, Fetched)
    assert [piece.parcel for piece in answer.updates] == [LESSONS.parcel(1, WHOLE)]


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
    assert chunks(side.core.carried) == []


def test_a_newcomers_delta_is_in_the_newcomers_half_of_the_room() -> None:
    side = side_of()
    side.around.newcomers = {AUTHOR}
    side.core.carry(AUTHOR, carry(), NOW)
    assert [len(side.core.carried._of[stands]) for stands in (True, False)] == [0, 1]


def test_a_courier_that_its_own_view_lacks_takes_its_rows() -> None:
    side = Side(A, Around(B, C), store(WHOLE.tolist()), delta_checks=CHECKS)
    side.core.carry(AUTHOR, carry(), NOW)
    assert told(side, 0, 2) == Pushed(packed(shards(0, 2), SHARDS))
