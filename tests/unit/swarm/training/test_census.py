"""Counting what is committed of a job, among owners of every temper."""

import random

import pytest
from pyroaring import BitMap

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.training.census import Census
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Compare, Compared, Pushed, Refusal
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import (
    JOB,
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
    sent,
    shards,
    store,
    update,
)

ALL = list(range(SHARDS))
NOTHING = applied().to_bytes()
GONE = Compared(b"a" * SHARDS, [-1] * SHARDS, [])


def said(*sets: Applied) -> Compared:
    """Return what a peer tells that has a set of chunks for each shard, all of them ready."""
    return Compared(b"r" * len(sets), list(range(len(sets))), [one.to_bytes() for one in sets])


def same(*chunks: int) -> Compared:
    """Return what a peer tells that has these chunks for all shards."""
    return said(*[applied(*chunks)] * SHARDS)


class Counting:
    """A census, with what it asked for."""

    def __init__(self, *members: Peer, quorum: int = 2) -> None:
        self.around = Around(*members)
        self.around.rules = Rules(SHARDS, 3, quorum)
        self.census = Census(JOB, self.around, 4.0)
        self.calls: list[Call] = []

    def tick(self, now: float = NOW) -> list[Peer]:
        """Return who is asked now."""
        return self._do(self.census.tick(now))

    def answer(self, peer: Peer, message: Message | None, now: float = NOW) -> list[Peer]:
        """Give a peer's answer; return who is asked then."""
        (call,) = [call for call in self.calls if call.peer == peer]
        self.calls.remove(call)
        return self._do(self.census.answered(call.number, message, now))

    def _do(self, calls: list[Call]) -> list[Peer]:
        self.calls += calls
        return sorted(call.peer for call in calls)

    def asked(self, peer: Peer) -> list[int]:
        """Return for which shards a peer is being asked."""
        (question,) = [call.message for call in self.calls if call.peer == peer]
        assert isinstance(question, Compare)
        return unpacked(question.shards, SHARDS).tolist()

    @property
    def committed(self) -> list[int] | None:
        found = self.census.committed
        return None if found is None else list(found)


def test_every_owner_is_asked_once_for_all_that_is_its_own() -> None:
    one = Counting(A, B, C, D)
    assert one.committed is None
    assert one.tick() == [A, B, C, D]
    placement = one.around.placement(NOW)
    for call in one.calls:
        owned = placement.shards_of(call.peer)
        assert call.message == Compare(packed(owned, SHARDS), [b""] * len(owned), job=JOB)
        assert call.timeout == 4.0
    assert one.tick(NOW + 3) == []  # all are still being asked


def test_it_counts_what_a_quorum_has_of_each_shard() -> None:
    one = Counting(A, B, C)
    one.tick()
    one.answer(A, said(applied(1, 2), applied(1, 2), applied(1, 2), applied(1, 2, 3)))
    assert one.committed is None
    one.answer(B, said(applied(1, 2), applied(1), applied(1, 2, 3), applied(1, 2, 3)))
    assert one.committed == [1]
    one.answer(C, said(applied(1), applied(2), applied(2), applied(3)))
    assert one.committed == [1, 2]  # it was asked, so what it says counts, too


def known(one: Counting, *chunks: int) -> list[int]:
    return list(one.census.known(BitMap(chunks)))


def test_what_no_owner_of_any_shard_has_was_never_committed() -> None:
    one = Counting(A, B, C)
    assert known(one, 1, 2) == [1, 2]  # nobody was asked yet
    one.tick()
    one.answer(A, said(applied(1, 2), applied(1, 2), applied(1), applied(1, 3)))
    assert known(one, 1, 2, 3, 4) == [1, 2, 3, 4]  # B and C may have it, and be a quorum
    one.answer(B, said(applied(1), applied(2), applied(2), applied(2)))
    assert known(one, 1, 2, 3, 4) == [1, 2, 3]  # who took 3 in may be no owners any longer
    assert one.committed == []
    assert known(one, 2, 4) == [2]
    one.answer(C, same(4))
    assert known(one, 4) == [4]


def test_one_shard_of_which_too_few_tell_may_have_any() -> None:
    one = Counting(A, B, C)
    one.tick()
    for peer in (A, B):
        one.answer(peer, Compared(b"rrra", [0, 0, 0, -1], [applied(1).to_bytes()]))
    assert known(one, 1, 2) == [1, 2]
    one.answer(C, same(1))
    assert known(one, 1, 2) == [1, 2]


def test_where_one_owner_is_enough_all_have_to_tell_before_a_chunk_is_unknown() -> None:
    one = Counting(A, B, C, quorum=1)
    one.tick()
    for peer in (A, B):
        one.answer(peer, same(1))
        assert known(one, 1, 2) == [1, 2]
    one.answer(C, same(1))
    assert known(one, 1, 2) == [1]


def test_one_shard_of_which_too_little_is_known_is_enough_to_wait() -> None:
    one = Counting(A, B, C)
    one.tick()
    for peer in (A, B):
        one.answer(peer, Compared(b"rrra", [0, 0, 0, -1], [applied(1).to_bytes()]))
    assert one.committed is None
    one.answer(C, same(1))
    assert one.committed is None
    assert one.tick(NOW + 1) == [A, B]  # C has told all
    assert one.asked(A) == [3]
    one.answer(A, said(applied(1)), NOW + 1)
    assert one.committed == [1]
    assert one.tick(NOW + 9) == []


def test_of_shards_of_which_enough_is_known_no_more_is_asked() -> None:
    one = Counting(A, B, C)
    one.tick()
    one.answer(A, same(1))
    one.answer(B, Compared(b"rrra", [0, 0, 0, -1], [applied(1).to_bytes()]))
    one.answer(C, None)
    assert one.tick(NOW + 1) == [B, C]
    assert (one.asked(B), one.asked(C)) == ([3], [3])


def ready_at(one: Counting, *peers: Peer) -> None:
    one.around.ready_at = {shard: list(peers) for shard in ALL}


def test_those_are_asked_with_whom_shards_are_ready() -> None:
    one = Counting(A, B, C)
    ready_at(one, C, A, D)
    assert one.tick() == [A, C]  # D owns nothing
    one.answer(C, same(1, 2))
    one.answer(A, same(1, 2))
    assert one.committed == [1, 2]


def test_where_those_are_not_enough_all_are_asked() -> None:
    one = Counting(A, B, C)
    ready_at(one, B)
    one.around.ready_at[2] = [A, C]
    assert one.tick() == [A, B, C]
    assert [one.asked(peer) for peer in (A, B, C)] == [ALL, [0, 1, 3], ALL]


@pytest.mark.parametrize("answer", [None, Refusal("busy"), GONE])
def test_if_one_of_them_tells_nothing_the_others_are_asked_at_once(answer: Message | None) -> None:
    one = Counting(A, B, C)
    ready_at(one, A, B)
    assert one.tick() == [A, B]
    one.answer(A, same(1))
    assert one.answer(B, answer) == [C]
    assert one.tick(NOW + 1) == [B]
    one.answer(B, same(1), NOW + 1)
    assert one.committed == [1]


def test_who_says_ready_and_has_nothing_is_not_waited_for() -> None:
    one = Counting(A, B, C)
    ready_at(one, A, B)
    one.tick()
    one.answer(A, None)
    one.answer(B, None)
    for peer in (A, B):
        one.tick(NOW + 1)
        one.answer(peer, Compared(b"rrra", [0, 0, 0, -1], [applied(1).to_bytes()]), NOW + 1)
    one.answer(C, None, NOW + 1)
    assert one.tick(NOW + 2) == [A, B, C]
    for peer in (A, B):
        one.answer(peer, said(applied(1)), NOW + 2)
    assert one.committed == [1]


def test_other_jobs_do_not_count() -> None:
    one = Counting(A, B)
    one.tick()
    for peer in (A, B):
        one.answer(peer, said(*[applied(1) | applied(2, job=OTHER_JOB)] * SHARDS))
    assert one.committed == [1]


def test_a_new_job_has_nothing() -> None:
    one = Counting(A, B)
    one.tick()
    one.answer(A, same())
    one.answer(B, same())
    assert one.committed == []


def test_a_quorum_of_one() -> None:
    one = Counting(A, quorum=1)
    one.tick()
    one.answer(A, said(applied(1, 2), applied(2), applied(2, 3), applied(2)))
    assert one.committed == [2]


def test_who_holds_nothing_does_not_count() -> None:
    one = Counting(A, B)
    one.tick()
    one.answer(A, same(1))
    one.answer(B, GONE)
    assert one.committed is None
    assert one.tick(NOW + 0.99) == []
    assert one.tick(NOW + 1) == [B]
    one.answer(B, same(1), NOW + 1)
    assert one.committed == [1]


@pytest.mark.parametrize("letter", "srd")
def test_whoever_holds_a_shard_may_tell(letter: str) -> None:
    one = Counting(A, B)
    one.tick()
    for peer in (A, B):
        one.answer(peer, Compared(letter.encode() * SHARDS, [0] * 4, [applied(5).to_bytes()]))
    assert one.committed == [5]


def test_what_is_the_same_as_nothing_is_nothing() -> None:
    one = Counting(A, B)
    one.tick()
    one.answer(A, same(1))
    one.answer(B, Compared(b"rrrr", [-1] * SHARDS, []))
    assert one.committed == []


LIES: dict[str, Message | None] = {
    "none in time": None,
    "a refusal": Refusal("busy"),
    "of another kind": Pushed(packed(shards(*ALL), SHARDS)),
    "too few states": Compared(b"rrr", [0] * SHARDS, [NOTHING]),
    "too many states": Compared(b"rrrrr", [0] * SHARDS, [NOTHING]),
    "a state that is none": Compared(b"rrrx", [0] * SHARDS, [NOTHING]),
    "states of no letters": Compared(b"rrr\xff", [0] * SHARDS, [NOTHING]),
    "too few sets named": Compared(b"rrrr", [0] * 3, [NOTHING]),
    "too many sets named": Compared(b"rrrr", [0] * 5, [NOTHING]),
    "a set that is not there": Compared(b"rrrr", [0, 0, 0, 1], [NOTHING]),
    "a set before the first": Compared(b"rrrr", [0, 0, 0, -2], [NOTHING]),
    "a set that is none": Compared(b"rrrr", [0] * SHARDS, [b"none"]),
    "a set cut off": Compared(b"rrrr", [0] * SHARDS, [applied(1).to_bytes()[:-1]]),
    "a set of a job that is none": Compared(b"rrrr", [0] * 4, [applied(1, job=b"x").to_bytes()]),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_counts_for_nothing_and_is_asked_again(name: str) -> None:
    one = Counting(A, B)
    one.tick()
    one.answer(A, same(1, 2))
    assert one.answer(B, LIES[name]) == []
    assert one.committed is None
    assert one.tick(NOW + 0.99) == []
    assert one.tick(NOW + 1) == [B]
    assert one.asked(B) == ALL
    one.answer(B, same(2, 3), NOW + 1)
    assert one.committed == [2]


def test_any_kind_of_message_but_one_tells_nothing() -> None:
    for message in MESSAGES:
        if not isinstance(message, Compared):
            one = Counting(A, quorum=1)
            one.tick()
            one.answer(A, message)
            assert one.committed is None


def test_one_liar_alone_neither_adds_nor_takes_away() -> None:
    for lie in (same(), same(*range(100)), GONE, None):
        one = Counting(A, B, C)
        one.tick()
        for peer, message in ((A, lie), (B, same(1, 2)), (C, same(1, 2))):
            one.answer(peer, message)
        assert one.committed == [1, 2]


def test_it_goes_on_after_a_time_out_without_those_that_are_gone() -> None:
    one = Counting(A, B, C)
    one.tick()
    one.answer(A, same(7))
    assert one.answer(B, None, NOW + 4) == []
    one.around.capacities = dict.fromkeys([A, C, D], 1)
    assert one.answer(C, None, NOW + 4) == [D]  # at once, and the others in a while
    assert one.tick(NOW + 5) == [C]
    one.answer(D, same(7), NOW + 5)
    assert one.committed == [7]
    assert one.answer(C, same(), NOW + 5) == []


def test_without_members_it_waits() -> None:
    one = Counting()
    assert one.tick() == []
    assert one.committed is None
    one.around.capacities = {A: 1, B: 1}
    assert one.tick(NOW + 1) == [A, B]


def test_answers_to_nothing_are_nothing() -> None:
    one = Counting(A)
    one.tick()
    for message in (*MESSAGES, None):
        assert one.census.answered(99, message, NOW) == []
    assert one.committed is None


def test_storage_peers_answer_it() -> None:
    one = Counting(A, B)
    one.tick()
    for peer, more in ((A, 3), (B, 4)):
        held = store(chunks=range(2))
        held.apply([update(more, 1), update(more, *ALL, job=OTHER_JOB)])
        side = Side(peer, one.around, held)
        (call,) = [call for call in one.calls if call.peer == peer]
        one.answer(peer, sent(side.answers.to(sent(call.message))))
    assert one.committed == [0, 1]


@pytest.mark.parametrize("quorum", [1, 2, 3, 4])
def test_against_counting_by_hand(quorum: int) -> None:
    rng = random.Random(quorum)
    for _ in range(20):
        one = Counting(A, B, C, quorum=quorum)
        one.tick()
        told: dict[Peer, list[Applied]] = {}
        for call in list(one.calls):
            sets = [applied(*rng.sample(range(6), rng.randrange(7))) for _ in ALL]
            told[call.peer] = sets
            one.answer(call.peer, said(*sets))
        wanted = [
            chunk
            for chunk in range(6)
            if all(
                sum(chunk in sets[shard].of(JOB) for sets in told.values()) >= quorum
                for shard in ALL
            )
        ]
        assert one.committed == (wanted if quorum <= 3 else None)


def test_what_was_told_is_left_as_it_is() -> None:
    one = Counting(A, B, quorum=1)
    one.tick()
    one.answer(A, same(1))
    found = one.census.committed
    assert found == BitMap([1])
    found |= BitMap([2])
    assert one.committed == [1]


def test_a_worker_that_knows_an_earlier_edition_is_not_taken_for_a_liar() -> None:
    """Two took its chunk, a quorum by the manifest; by the newest edition, three have to."""
    one = Counting(A, B, C, D)
    one.around.rules = Rules(SHARDS, 4, 3, founded=3, first_quorum=2, edition=1)
    one.tick()
    for peer in (A, B):
        one.answer(peer, same())
    assert known(one, 1) == [1]  # C and D may have it
    one.answer(C, same())
    assert known(one, 1) == []
