"""Getting deltas that another peer has: what is asked for, and what is taken."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest

from giaann_p2p.errors import DiskError
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import encode, sizes_of
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.replication import delta_fetch
from giaann_p2p.swarm.replication.delta_fetch import Lack
from giaann_p2p.swarm.replication.fetch import common
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.actions import Apply, Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Compare, Fetch, Fetched, Offer, Part, Piece, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import (
    JOB,
    LAYOUT,
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
    accused,
    applied,
    make_ready,
    sent,
    shards,
    store,
    talk,
    update,
)

NONE = applied().to_bytes()


def sides(mine: Store, theirs: Store) -> tuple[Side, Side]:
    """Return a peer that has asked all others for their chunks, and another one."""
    around = Around(A, B, C)
    one, other = Side(A, around, mine), Side(B, around, theirs)
    other.core.tick(NOW)
    one.tick(NOW)
    return one, other


def fetching(mine: Store, theirs: Store) -> tuple[Side, Side, Call]:
    """Return them with the request for deltas that the other one is to answer."""
    one, other = sides(mine, theirs)
    compare(one, other, NOW)
    (call,) = [call for call in one.calls if isinstance(call.message, Fetch)]
    return one, other, call


def compare(one: Side, other: Side, now: float) -> None:
    (call,) = [c for c in one.calls if isinstance(c.message, Compare) and c.peer == other.me]
    one.answer(call, sent(other.answers.to(call.message)), now)


def asked(call: Call) -> tuple[list[int], Applied]:
    assert isinstance(call.message, Fetch)
    chunks = Applied.from_bytes(call.message.chunks)
    return unpacked(call.message.shards, SHARDS).tolist(), chunks


def test_what_is_lacking_is_asked_for_and_taken_in() -> None:
    mine, theirs = store(chunks=[0, 1]), store(chunks=[0, 1, 2, 3])
    one, other, call = fetching(mine, theirs)
    assert call.peer == B
    assert asked(call) == ([0, 1, 2, 3], applied(2, 3))
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    assert mine.digest() == theirs.digest()
    assert mine.sets(range(SHARDS)) == theirs.sets(range(SHARDS))
    assert one.core.reports.of(B, 0) is not None
    assert one.around.trusted == [B, B]
    one.tick(NOW + 1)
    assert [call.peer for call in one.calls if isinstance(call.message, Compare)] == [C, B]


def test_shards_that_lack_the_same_are_asked_for_together_most_first() -> None:
    mine, theirs = store(chunks=[0]), store(chunks=[0])
    theirs.apply([update(1, 0, 2, 3), update(2, 1)])
    one, other, call = fetching(mine, theirs)
    assert asked(call) == ([0, 2, 3], applied(1))
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    one.tick(NOW + 1)
    talk(one, other, NOW + 1)
    assert mine.digest() == theirs.digest()


def test_shards_are_asked_for_together_if_they_lack_much_in_common() -> None:
    """A delta is unpacked for each request, and costs as much for one shard as for all."""
    mine, theirs = store(chunks=[0]), store(chunks=range(20))
    mine.apply([update(1, 0), update(2, 1), update(3, 1), update(4, 2)])
    one, other, call = fetching(mine, theirs)
    fetched = [asked(call)]
    for later in range(1, 9):
        for call in [call for call in one.calls if isinstance(call.message, Fetch)]:
            one.answer(call, sent(other.answers.to(call.message)), NOW + later)
        one.tick(NOW + later)
        talk(one, other, NOW + later)
    assert fetched == [([0, 1, 2, 3], applied(*range(5, 20)))]
    assert mine.sets(range(SHARDS)) == theirs.sets(range(SHARDS))


def test_what_is_common_to_lacking_sets() -> None:
    def lack(chunks: Iterable[int], *of: int, remembered: bool = False) -> Lack:
        return Lack(applied(*chunks), list(of), remembered)

    many, few = lack(range(99), 4, 5), lack(range(90, 99), 1)
    assert common([many]) == []
    assert common([few, many]) == []  # nine deltas for three shards, instead of many for two
    half = lack(range(50), 1)
    assert common([half, few, many]) == [Lack(half.chunks, [1, 4, 5], False, False)]
    assert common([lack(range(40), 1, remembered=True), many]) == []
    assert common([lack([1, 2], 1), lack([2, 3], 2), lack([4], 3)]) == []
    assert common([lack([1, 2], 1), lack([1, 2, 3], 2)]) == [
        Lack(applied(1, 2), [1, 2], False, False)
    ]


def test_no_whole_shard_is_taken_because_of_what_is_not_all_that_is_lacking() -> None:
    mine, theirs = store(chunks=[0]), store(chunks=range(9))
    mine.apply([update(8, 0)])
    theirs.release(JOB, range(1, 8), [1])
    one, other, call = fetching(mine, theirs)
    assert asked(call) == ([0, 1, 2, 3], applied(*range(1, 8)))
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    (call,) = [call for call in one.calls if isinstance(call.message, Fetch)]
    assert asked(call) == ([1, 2, 3], applied(*range(1, 9)))
    assert not any(isinstance(call.message, Offer) for call in one.calls)


def test_what_is_gone_comes_with_whole_shards_though_there_is_always_something_new() -> None:
    mine, theirs = store(chunks=[0]), store(chunks=range(9))
    mine.apply([update(7, 0), update(8, 1)])
    theirs.release(JOB, range(1, 9))
    one, other, call = fetching(mine, theirs)
    assert asked(call) == ([0, 1, 2, 3], applied(*range(1, 7)))
    for later in range(20, 40):
        one.answer(one.calls[-1], sent(other.answers.to(one.calls[-1].message)), NOW + later)
        if any(isinstance(call.message, Offer) for call in one.calls):
            break
        theirs.apply([update(later, *range(SHARDS))])
        theirs.release(JOB, [later])
        one.tick(NOW + later)
        compare(one, other, NOW + later)
    assert later < 39


def test_nothing_is_asked_for_that_is_here_or_not_wanted() -> None:
    one, other = sides(store(chunks=[0, 1]), store(chunks=[1]))
    compare(one, other, NOW)
    assert [call for call in one.calls if isinstance(call.message, Fetch)] == []
    one, other = sides(store([2], [0]), store([2], [0, 1]))
    one.around.capacities = dict.fromkeys([B, C], 1)
    one.around.changes += 1
    one.do(one.core.leave(NOW), NOW)  # it is only to be handed over
    compare(one, other, NOW)
    assert [call for call in one.calls if isinstance(call.message, Fetch)] == []


def test_no_chunk_is_asked_for_twice_at_once() -> None:
    around = Around(A, B, C)
    one = Side(A, around, store(chunks=[0]))
    two, three = Side(B, around, store(chunks=[0, 1, 2])), Side(C, around, store(chunks=[0, 2, 3]))
    one.tick(NOW)
    compare(one, two, NOW)
    compare(one, three, NOW)
    fetches = [(call.peer, asked(call)[1]) for call in one.calls]
    assert fetches == [(B, applied(1, 2)), (C, applied(3))]
    one.answer(one.calls[0], None, NOW + 4)  # so that 2 is to come from elsewhere
    one.answer(one.calls[0], sent(three.answers.to(one.calls[0].message)), NOW + 4)
    assert [(call.peer, asked(call)[1]) for call in one.calls] == [(C, applied(2))]


def test_a_peer_is_asked_for_one_thing_at_a_time() -> None:
    one, other, _ = fetching(store(), store(chunks=[1]))
    other.store.apply([update(2, 0, 1, 2, 3)])
    one.tick(NOW + 6)
    compare(one, other, NOW + 6)
    assert sum(isinstance(call.message, Fetch) for call in one.calls) == 1


def test_an_old_word_makes_nobody_ask() -> None:
    one, other = sides(store(), store(chunks=[1]))
    compare_late = NOW + 13
    compare(one, other, compare_late)
    assert [call for call in one.calls if isinstance(call.message, Fetch)] == []


def test_whatever_is_kept_comes_as_deltas_and_is_kept_here() -> None:
    one, other, call = fetching(store(chunks=[9]), store(chunks=range(200)))
    assert asked(call) == ([0, 1, 2, 3], applied(*range(9), *range(10, 200)))
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    talk(one, other, NOW + 1)
    one.tick(NOW + 1)
    assert [call for call in one.calls if isinstance(call.message, Offer)] == []
    assert one.store.retained_for(0) == one.store.sets([0])[0] == applied(*range(200))


def test_a_whole_shard_comes_only_where_what_is_here_can_be_added() -> None:
    mine = store(chunks=[9])
    mine.release(JOB, [9])
    one, other, call = fetching(mine, store(chunks=range(5)))
    assert asked(call) == ([0, 1, 2, 3], applied(*range(5)))  # one after the other, then
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    assert mine.sets([0])[0] == applied(*range(5), 9)


def test_what_is_not_kept_any_longer_comes_with_the_whole_shard() -> None:
    theirs = store(chunks=[0, 1, 2])
    theirs.release(JOB, [1])
    one, other, call = fetching(store(chunks=[0]), theirs)
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    assert one.store.sets([0])[0] == applied(0, 2)
    for later in range(1, 4):
        one.tick(NOW + later)
        talk(one, other, NOW + later)
    assert one.store.digest() == theirs.digest()
    assert one.store.retained_for(0) == applied(0, 2)


def test_no_whole_shard_is_taken_of_who_is_barred_from_it() -> None:
    theirs = store(chunks=[0, 1])
    theirs.release(JOB, [1])
    around = Around(A, B, C, D)
    owners = Placement.of(around.capacities, SHARDS, 3).owners
    shard = next(n for n in range(SHARDS) if {*owners(n)} == {A, B, C})
    around.named_by = {peer: accused(B, shards(shard)) for peer in (A, C)}
    one, other = Side(A, around, store(chunks=[0])), Side(B, Around(A, B, C), theirs)
    other.core.tick(NOW)
    for later in range(4):
        one.tick(NOW + later)
        talk(one, other, NOW + later)
    assert one.core.replicas.excluded(shard) == {B}
    held = one.store.sets(range(SHARDS))
    assert held[shard] == applied(0)
    assert applied(0, 1) in held.values()


def test_what_cannot_be_had_does_not_keep_back_what_can() -> None:
    mine, theirs = store(chunks=[0]), store(chunks=[0])
    mine.apply([update(9, 0, 2, 3)])
    mine.release(JOB, [0, 9])  # so that no whole shard can be added to what is here
    theirs.apply([update(1, 0, 2, 3), update(2, 1), update(3, 1)])
    theirs.release(JOB, [1])
    one, other, call = fetching(mine, theirs)
    fetched = [asked(call)]
    for later in (1, 2, 3, 4):
        one.answer(one.calls[-1], sent(other.answers.to(one.calls[-1].message)), NOW + later)
        one.tick(NOW + later)
        compare(one, other, NOW + later)
        fetched += [asked(call) for call in one.calls if isinstance(call.message, Fetch)]
    most = ([0, 2, 3], applied(1))
    assert fetched == [most, most, ([1], applied(2, 3)), most, most]  # the second, as remembered
    assert mine.sets([1])[1] == applied(0, 2, 3)


def on_a_disk(*chunks: int) -> Store:
    """Return a store that has let go of the deltas of all its chunks, and remembers them."""
    made = Store.open(FakeDisk(), SPEC, LAYOUT, retain=True, spare=1 << 20)
    made.hold(range(SHARDS))
    made.apply([update(chunk, *range(SHARDS)) for chunk in chunks])
    made.release(JOB, chunks)
    return made


def test_two_that_let_go_of_what_the_other_lacks_come_to_the_same_by_what_they_remember() -> None:
    mine, theirs = on_a_disk(0, 1, 2, 3), on_a_disk(0, 4, 5)
    one, other = sides(mine, theirs)
    make_ready(other.core.replicas)
    asked = list[Message]()
    for later in range(1, 20):
        one.tick(NOW + later)
        asked += talk(one, other, NOW + later)
    assert mine.sets([0])[0] == applied(*range(6))
    assert mine.digest() == store(chunks=range(6)).digest()
    wishes = [message for message in asked if isinstance(message, Fetch)]
    assert [wish.remembered for wish in wishes] == [False, True]
    assert one.core._fetching._apart == {}
    assert not any(isinstance(message, Offer) for message in asked)


def test_it_goes_on_asking_for_what_is_remembered_and_of_so_many_peers_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delta_fetch, "MOST_UNPACKED", 1)  # one delta at a time
    one, other = sides(on_a_disk(0, 1, 2, 3), on_a_disk(0, 4, 5, 6))
    make_ready(other.core.replicas)
    gone = {Peer(number.to_bytes(32, "little")): {0} for number in range(256)}
    one.core._fetching._apart |= gone
    asked = list[Message]()
    for later in range(1, 20):
        one.tick(NOW + later)
        asked += talk(one, other, NOW + later)
    wishes = [message.remembered for message in asked if isinstance(message, Fetch)]
    assert wishes == [False, True, True, True]
    assert one.store.sets([0])[0] == applied(*range(7))
    assert len(one.core._fetching._apart) < 256


def test_where_a_whole_shard_helps_nothing_is_asked_for_that_is_merely_remembered() -> None:
    one, other = sides(store(chunks=[0]), on_a_disk(0, 1, 2))
    asked = list[Message]()
    for later in range(1, 20):
        one.tick(NOW + later)
        asked += talk(one, other, NOW + later)
    assert one.store.digest() == other.store.digest()
    assert not any(message.remembered for message in asked if isinstance(message, Fetch))


def test_what_came_is_remembered_no_longer() -> None:
    mine, theirs = store(chunks=[0]), store(chunks=[0])
    mine.apply([update(9, 0)])
    mine.release(JOB, [0, 9])
    theirs.apply([update(1, 0)])
    theirs.release(JOB, [1])
    one, other, _ = fetching(mine, theirs)
    for later in range(20, 40):  # there is always something new
        theirs.apply([update(later, 1)])
        one.answer(one.calls[-1], sent(other.answers.to(one.calls[-1].message)), NOW + later)
        one.tick(NOW + later)
        compare(one, other, NOW + later)
    assert len(mine.sets([1])[1]) > 10
    assert len(one.core._fetching._tried[B]) <= 2


def test_what_was_asked_for_in_vain_is_forgotten_of_peers_long_gone() -> None:
    one, _ = sides(store(), store())
    for number in range(300):
        stranger = Peer(number.to_bytes(32, "little"))
        one.core.reports.heard(stranger, 0, PeerReport(ReplicaState.READY, applied(number), NOW))
        one.do(one.core._fetching.after(stranger, NOW), NOW)
    assert len(one.core._fetching._tried) == 256


def test_a_refusal_is_no_silence_and_another_time_it_is_asked_again() -> None:
    one, other, call = lied_to()
    one.around.trusted.clear()
    one.answer(call, Refusal("I am busy"), NOW + 1)
    assert (one.around.suspected, one.around.trusted) == ([], [B])
    assert [call for call in one.calls if call.peer == B] == []  # not at once
    one.tick(NOW + 20)
    talk(one, other, NOW + 20)
    assert one.store.digest() == other.store.digest()


def test_what_unpacks_to_too_much_for_one_answer_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parcels = [LESSONS.parcel(chunk, shards(*range(SHARDS))) for chunk in (0, 1)]
    sizes = map(sizes_of, parcels)
    most = sum(told.neurons + told.connections + told.text for told in sizes)
    monkeypatch.setattr(delta_fetch, "MOST_UNPACKED", most)
    one, other, call = fetching(store(), store(chunks=range(3)))
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    assert one.store.sets([0])[0] == applied(0, 1)
    assert one.around.suspected == []
    one.tick(NOW + 2)
    talk(one, other, NOW + 2)
    assert one.store.digest() == other.store.digest()


def test_a_single_delta_passes_whatever_it_unpacks_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_fetch, "MOST_UNPACKED", 1)
    one, other, call = fetching(store(), store(chunks=range(2)))
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    assert one.store.sets([0])[0] == applied(0)


def test_a_chunk_that_came_there_meanwhile_is_kept_here_too() -> None:
    """Else, with its keeper lost, none could join this replica and one that has yet another."""
    theirs = store(chunks=[0, 1])
    theirs.release(JOB, [0])
    one, other, call = fetching(store(), theirs)
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    one.tick(NOW + 1)
    came = 5
    while mine := [call for call in one.calls if call.peer == B]:
        if isinstance(mine[0].message, Offer):
            theirs.apply([update(came, *range(SHARDS))])
            came += 1
        one.answer(mine[0], sent(other.answers.to(mine[0].message)), NOW + 1)
    assert one.store.sets([0])[0] >= applied(0, 1, 5)
    assert one.store.sets([0])[0] == one.store.retained_for(0) | applied(0)


def test_shards_that_went_meanwhile_get_nothing() -> None:
    one, other, call = fetching(store(), store(chunks=[1]))
    one.core.replicas.covered(2, NOW)
    one.store.drop([2])
    one.answer(call, sent(other.answers.to(call.message)), NOW + 1)
    (deed,) = one.told(Apply)
    assert [update.shards.tolist() for update in deed.updates] == [[0, 1, 3]]
    assert one.store.shards.tolist() == [0, 1, 3]
    assert one.store.sets([0])[0] == applied(1)


def test_a_store_that_fails_is_no_fault_of_the_peer_and_ends_the_wait() -> None:
    one, other, call = fetching(store(), store(chunks=[1]))
    one.calls.remove(call)
    answer = sent(other.answers.to(call.message))
    (deed, *_) = one.core.answered(call.number, answer, NOW + 1)
    assert isinstance(deed, Apply)
    one.do(one.core.stored(deed.number, DiskError("the disk is full"), NOW + 2), NOW + 2)
    assert one.around.suspected == []
    one.tick(NOW + 2.9)
    compare(one, other, NOW + 2.9)
    assert [call for call in one.calls if isinstance(call.message, Fetch)] == []  # no room yet
    one.tick(NOW + 20)
    compare(one, other, NOW + 20)
    assert asked(one.calls[-1]) == ([0, 1, 2, 3], applied(1))


def piece(chunk: int, *numbers: int, job: bytes = JOB, parcel: bytes = b"") -> Piece:
    some = shards(*numbers)
    return Piece(job, chunk, packed(some, SHARDS), parcel or LESSONS.parcel(chunk, some))


GOOD = piece(1, 0, 1)
LIES: dict[str, Message | None] = {
    "none in time": None,
    "of another kind": Part(b""),
    "another chunk": Fetched([piece(3, 0)], NONE),
    "another job": Fetched([piece(1, 0, job=OTHER_JOB)], NONE),
    "a chunk that is here": Fetched([piece(0, 0)], NONE),
    "another shard": Fetched([piece(1, 0, 3)], NONE),
    "a good one and a bad one": Fetched([GOOD, piece(3, 0)], NONE),
    "no parcel": Fetched([piece(1, 0, parcel=b"none")], NONE),
    "no set of shards": Fetched([Piece(JOB, 1, b"\2", GOOD.parcel)], NONE),
    "a longer set of shards": Fetched([Piece(JOB, 1, b"\2\1\1", GOOD.parcel)], NONE),
    "no set that is gone": Fetched([GOOD], b"none"),
}


def test_a_delta_that_is_seen_to_be_none_when_it_is_unpacked() -> None:
    one, _, call = lied_to()
    before = one.store.digest(), one.store.sets(range(SHARDS))
    one.answer(call, Fetched([piece(1, 0, parcel=GOOD.parcel[:-1])], NONE), NOW + 1)
    assert len(one.told(Apply)) == 1
    assert one.around.suspected == [B]
    assert (one.store.digest(), one.store.sets(range(SHARDS))) == before
    assert one.core._fetching._coming == {}


def lied_to() -> tuple[Side, Side, Call]:
    mine, theirs = store(chunks=[0]), store(chunks=[0])
    theirs.apply([update(1, 0, 1, 2), update(2, 0, 1, 2)])
    return fetching(mine, theirs)


@pytest.mark.parametrize("name", LIES)
def test_a_lie_leads_to_suspicion_and_nothing_else(name: str) -> None:
    one, other, call = lied_to()
    before = one.store.digest(), one.store.sets(range(SHARDS))
    one.done.clear()
    one.around.trusted.clear()
    one.answer(call, LIES[name], NOW + 1)
    assert one.done == []
    assert one.around.suspected == [B]
    assert one.around.trusted == []
    assert (one.store.digest(), one.store.sets(range(SHARDS))) == before
    one.tick(NOW + 20)
    talk(one, other, NOW + 20)  # who mends his ways is asked again
    assert one.store.digest() == other.store.digest()


def test_any_kind_of_message_but_one_is_suspicious() -> None:
    for message in MESSAGES:
        if not isinstance(message, Fetched | Refusal):
            one, _, call = lied_to()
            one.answer(call, message, NOW + 1)
            assert one.around.suspected == [B]


@pytest.mark.parametrize(
    "answer", [Fetched([], NONE), Fetched([], applied(1).to_bytes()), Fetched([piece(1)], NONE)]
)
def test_an_answer_with_nothing_in_it_ends_the_question(answer: Fetched) -> None:
    one, other, call = lied_to()
    one.answer(call, answer, NOW + 1)
    assert one.around.suspected == []
    one.tick(NOW + 20)
    one.calls = [call for call in one.calls if isinstance(call.message, Compare)]
    compare(one, other, NOW + 20)
    assert asked(one.calls[-1]) == ([0, 1, 2], applied(1, 2))


def test_a_delta_that_no_model_makes_is_refused_by_the_store() -> None:
    one, _, call = lied_to()
    before = one.store.digest()
    nameless = encode(replace(LESSONS.part(1, 0), names={}))
    one.answer(call, Fetched([piece(1, 0, parcel=nameless)], NONE), NOW + 1)
    assert one.store.digest() == before
    assert not one.core.replicas.all(ReplicaState.READY).tolist()


def test_all_is_fetched_in_the_end_whoever_has_what() -> None:
    around = Around(A, B, C)
    peers = [Side(peer, around, store()) for peer in (A, B, C)]
    for chunk in range(12):
        for at, side in enumerate(peers):
            numbers = [shard for shard in range(SHARDS) if (chunk + shard + at) % 3]
            side.store.apply([update(chunk, *numbers)])
    for now in range(1000, 1100):
        for side in peers:
            side.tick(float(now))
            for other in peers:
                talk(side, other, float(now))
    assert all(one.store.digest() == other.store.digest() for one, other in pairwise(peers))
    assert peers[0].store.sets([0])[0] == applied(*range(12))
    assert around.suspected == []
