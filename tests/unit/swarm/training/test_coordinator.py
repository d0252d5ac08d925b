"""The coordinator of a job: what its schedule decides becomes calls, and what it hears events."""

from collections.abc import Collection, Mapping

import pytest
from pyroaring import BitMap

from giaann_p2p.model.spec import CHUNK
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.store.seal import DIGEST
from giaann_p2p.swarm.training.chunks import ChunkState
from giaann_p2p.swarm.training.coordinator import Coordinator, JobAction, Lied, Over
from giaann_p2p.swarm.training.delta_agreement import DeltaAgreement
from giaann_p2p.swarm.training.lease_settings import LeaseSettings
from giaann_p2p.swarm.training.schedule import MOST_SLOTS, Schedule
from giaann_p2p.swarm.training.trust import Trust
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.training_messages import (
    Beat,
    BeatAck,
    Learn,
    LearnAck,
    LearnCut,
    Learned,
    LearnIn,
    Result,
    Skip,
    learn_order,
)
from giaann_p2p.swarm.wire.voucher import vouched
from tests.helpers_swarm import (
    AUTHORS,
    JOB,
    MESSAGES,
    NOW,
    OTHER_JOB,
    RULES,
    SHARDS,
    SWARM_ID,
    A,
    B,
    C,
    D,
    sent,
)

TRUE, FALSE = bytes(DIGEST), bytes([1]) * DIGEST
P = [author.peer for author in AUTHORS]
EACH = dict.fromkeys(P[:3], 1)
PACE = LeaseSettings(lease=10, longest=100, rest=2, failures=2, losses=4)
STRANGER = Refusal("this peer does not coordinate this job with you as a worker")


class InOrder:
    """The first that waits."""

    def pick(self, waiting: BitMap, busy: Collection[int]) -> int:
        return waiting[0]


def sentences(chunk: int) -> list[str]:
    """Return the text of a chunk."""
    return [f"Sentence {chunk}.", "Another one."]


def agreement(redundancy: int = 1, share: float = 0.0) -> tuple[DeltaAgreement, Trust]:
    """Return those who decide what counts."""
    trust = Trust(bytes(16))
    return DeltaAgreement(SWARM_ID, JOB, redundancy, share, trust), trust


class Leading:
    """A coordinator, with what it asked for and said at last."""

    def __init__(
        self,
        chunks: int,
        committed: Collection[int] = (),
        redundancy: int = 1,
        share: float = 0.0,
        size: int = CHUNK,
    ) -> None:
        self.schedule = Schedule(InOrder(), committed, PACE, alone=redundancy == 1)
        court, self.trust = agreement(redundancy, share)
        self.rules = RULES
        self.coordinator = Coordinator(
            JOB, self.schedule, sentences, court, self.trust, lambda: self.rules, size
        )
        self.orders: list[Learn] = []
        self.calls: list[Call] = []
        self.liars: list[Peer] = []
        self.over: list[Over] = []
        self.learned: list[int] = []
        self.do(self.coordinator.read(chunks, True, NOW))

    def do(self, acts: list[JobAction]) -> list[tuple[Peer, int]]:
        """Return who is to learn which chunk."""
        orders = []
        for act in acts:
            if isinstance(act, Call):
                question = sent(act.message)
                assert isinstance(question, Learn)
                text = sentences(question.chunk)
                sealing = question.doublings, question.size
                assert question == learn_order(JOB, question.chunk, text, *sealing)
                self.orders.append(question)
                self.calls.append(act)
                assert act.timeout == 4.0
                orders.append((act.peer, question.chunk))
            elif isinstance(act, Learned):
                self.learned.append(act.chunk)
            elif isinstance(act, Lied):
                self.liars.append(act.peer)
            else:
                self.over.append(act)
        return orders

    def seen(self, workers: Mapping[Peer, int], now: float = NOW) -> list[tuple[Peer, int]]:
        return self.do(self.coordinator.seen(workers, now))

    def accept(self) -> None:
        """Let the workers accept all orders so far."""
        for call in self.calls:
            assert self.coordinator.answered(call.number, LearnAck(), NOW) == []
        self.calls.clear()

    def tick(self, now: float) -> list[tuple[Peer, int]]:
        return self.do(self.coordinator.tick(now))

    def beat(
        self,
        peer: Peer,
        working: Collection[int] = (),
        done: Collection[int] = (),
        failed: Mapping[int, str] | None = None,
        job: bytes = JOB,
        now: float = NOW,
    ) -> tuple[Message, list[tuple[Peer, int]]]:
        """Let a worker tell; return what it is answered, and who is to learn what then."""
        beat = Beat(job, list(working), list(map(Learned, done)), list((failed or {}).items()))
        answer, acts = self.coordinator.beat(peer, beat, now)
        return sent(answer), self.do(acts)

    def came(
        self, number: int, chunk: int = 0, root: bytes = TRUE, now: float = NOW
    ) -> tuple[list[int], list[tuple[Peer, int]]]:
        """Let a worker tell what a chunk came to; return what it is to bring, and the orders."""
        author = AUTHORS[number]
        told = Result(chunk, root, vouched(author, SWARM_ID, JOB, chunk, root))
        answer, acts = self.coordinator.beat(author.peer, Beat(JOB, [chunk], [], [], [told]), now)
        assert isinstance(answer, BeatAck)
        assert answer.leave == ([] if answer.orders else [chunk])
        return [order.chunk for order in answer.orders], self.do(acts)

    def all(self, state: ChunkState) -> list[int]:
        return list(self.schedule.chunks(state))


def test_leases_become_orders_with_the_chunks_sentences() -> None:
    one = Leading(4)
    assert one.seen({B: 1, A: 2}) == [(A, 0), (A, 1), (B, 2)]
    assert one.seen({B: 1, A: 2}) == []
    assert one.all(ChunkState.LEASED) == [0, 1, 2]


def test_orders_have_numbers_of_their_own_and_stand_when_they_are_taken() -> None:
    one = Leading(4)
    calls = one.coordinator.seen({A: 2, B: 1}, NOW)
    numbers = [call.number for call in calls if isinstance(call, Call)]
    assert len(set(numbers)) == 3
    for number in numbers:
        assert one.coordinator.answered(number, LearnAck(), NOW) == []
    for message in (*MESSAGES, None):
        assert one.coordinator.answered(99, message, NOW) == []
    assert one.all(ChunkState.LEASED) == [0, 1, 2]


@pytest.mark.parametrize("answer", [None, *(m for m in MESSAGES if not isinstance(m, LearnAck))])
def test_an_order_that_is_not_taken_goes_to_another_and_costs_the_chunk_nothing(
    answer: Message | None,
) -> None:
    one = Leading(1)
    (call,) = [act for act in one.coordinator.seen({A: 1}, NOW) if isinstance(act, Call)]
    assert one.do(one.coordinator.answered(call.number, answer, NOW + 1)) == []
    assert one.all(ChunkState.WAITING) == [0]
    assert one.seen({A: 1, B: 1}, NOW + 2) == [(B, 0)]
    assert one.beat(A, working=[0], now=NOW + 3) == (BeatAck([0]), [])  # it had taken it after all


def test_what_somebody_has_who_cannot_be_reached_goes_to_another_until_it_is_heard_of() -> None:
    one = Leading(3)
    assert one.seen({A: 2, B: 1}) == [(A, 0), (A, 1), (B, 2)]
    assert one.do(one.coordinator.lost(A, NOW + 1)) == []
    assert one.do(one.coordinator.lost(C, NOW + 1)) == []
    assert one.all(ChunkState.WAITING) == [0, 1]
    assert one.beat(B, done=[2], now=NOW + 1) == (BeatAck([]), [(B, 0)])
    assert one.tick(NOW + 2) == []
    assert one.do(one.coordinator.announced(A, NOW + 2)) == [(A, 1)]
    assert one.do(one.coordinator.lost(A, NOW + 3)) == []
    assert one.beat(A, working=[1], now=NOW + 4) == (BeatAck([]), [(A, 1)])


def test_what_is_committed_is_not_leased_again() -> None:
    one = Leading(4, committed=[0, 2])
    assert one.seen({A: 9}) == [(A, 1), (A, 3)]


def test_text_may_come_bit_by_bit() -> None:
    one = Leading.__new__(Leading)
    one.schedule, one.over, one.learned, one.orders = Schedule(InOrder(), (), PACE), [], [], []
    one.calls = []
    one.coordinator = Coordinator(JOB, one.schedule, sentences, *agreement(), lambda: RULES, CHUNK)
    assert one.seen({A: 2}) == []
    assert one.do(one.coordinator.read(1, False, NOW)) == [(A, 0)]
    assert one.beat(A, done=[0]) == (BeatAck([]), [])
    assert one.over == []
    assert one.do(one.coordinator.read(2, True, NOW)) == [(A, 1)]
    one.beat(A, done=[1])
    assert one.over == [Over({})]


def test_all_that_learn_a_chunk_seal_it_in_the_layout_of_the_first_order() -> None:
    """Otherwise honest peers would come to different results when the shards double."""
    one = Leading(2, redundancy=2)
    one.seen({P[0]: 1})
    assert one.orders == [Learn(JOB, 0, sentences(0))]
    one.accept()
    one.rules = Rules(2 * SHARDS, founding_shards=SHARDS)
    assert one.came(0) == ([], [(P[0], 1)])
    assert one.seen({P[0]: 1, P[1]: 1}, NOW + 3) == [(P[1], 0)]
    assert one.orders[1:] == [LearnIn(JOB, 1, sentences(1), 1), Learn(JOB, 0, sentences(0))]
    one.accept()
    assert one.came(1) == ([0], [])
    assert one.liars == []


def test_an_order_says_how_chunks_of_the_size_are_cut() -> None:
    cuts = cut_columns(()), cut_columns((Cut("honey", 4),))
    for size, order in (
        (CHUNK, Learn(JOB, 0, sentences(0))),  # the job was begun before columns were cut
        (128, LearnCut(JOB, 0, sentences(0), 0, 128)),
    ):
        one = Leading(1, size=size)
        one.rules = RULES._replace(sizes=(CHUNK, 128), cuts=cuts)
        one.seen({P[0]: 1})
        assert one.orders == [order]


def test_a_result_that_an_earlier_coordinator_ordered_is_not_compared() -> None:
    """It may be sealed in a layout of before, so that others come to different results."""
    one = Leading(1, redundancy=2)
    one.rules = Rules(2 * SHARDS, founding_shards=SHARDS)
    assert one.seen({P[0]: 1}) == [(P[0], 0)]
    (call,) = one.calls
    refused = one.coordinator.answered(call.number, Refusal("it is sealed otherwise"), NOW)
    assert one.do(refused) == []
    one.calls.clear()
    assert one.came(0, root=FALSE, now=NOW + 1)[0] == []  # what it was ordered to before
    assert one.seen({P[0]: 0, P[1]: 1, P[2]: 1}, NOW + 3) == [(P[1], 0)]
    one.accept()
    assert one.came(1, now=NOW + 4) == ([], [(P[2], 0)])
    one.accept()
    assert one.came(2, now=NOW + 6)[0] == [0]
    assert one.liars == []


def test_a_job_of_nothing_is_over_at_once() -> None:
    assert Leading(0).over == [Over({})]
    assert Leading(2, committed=[0, 1]).over == [Over({})]


def test_who_leaves_has_its_chunks_learned_by_others() -> None:
    one = Leading(2)
    assert one.seen({A: 1}) == [(A, 0)]
    assert one.seen({B: 1}, NOW + 1) == [(B, 0)]
    assert one.beat(A, working=[0]) == (STRANGER, [])
    assert one.seen({A: 1, B: 1}, NOW + 2) == [(A, 1)]
    assert one.seen({}, NOW + 3) == []
    assert one.all(ChunkState.WAITING) == [0, 1]


def test_who_comes_with_work_keeps_it() -> None:
    one = Leading(3)
    one.seen({A: 1})
    assert one.seen({A: 1, B: 1}) == [(B, 1)]
    one = Leading(3, committed=[1])
    one.seen({A: 2})
    assert one.all(ChunkState.LEASED) == [0, 2]
    assert one.beat(A, working=[0, 1, 2]) == (BeatAck([1]), [])


@pytest.mark.parametrize(("slots", "leased"), [(0, 0), (1, 1), (1 << 31, MOST_SLOTS)])
def test_any_number_of_slots_may_be_told(slots: int, leased: int) -> None:
    one = Leading(MOST_SLOTS + 5)
    assert len(one.seen({A: slots})) == leased


def test_more_slots_take_more_chunks() -> None:
    one = Leading(4)
    assert one.seen({A: 1}) == [(A, 0)]
    assert one.seen({A: 1}) == []
    assert one.seen({A: 3}) == [(A, 1), (A, 2)]
    assert one.seen({A: 1}) == []
    assert one.beat(A, done=[0]) == (BeatAck([]), [])  # it has two still


def test_who_had_no_slots_comes_in_when_it_has() -> None:
    one = Leading(2)
    assert one.seen({A: 0}) == []
    assert one.beat(A, working=[0]) == (STRANGER, [])
    assert one.seen({A: 1}) == [(A, 0)]
    assert one.seen({A: 0}) == []  # it takes no more; it did not leave
    assert one.beat(A, working=[0]) == (BeatAck([]), [])


def test_who_is_about_to_leave_finishes_what_it_has_and_gets_no_more() -> None:
    one = Leading(3)
    assert one.seen({A: 2}) == [(A, 0), (A, 1)]
    assert one.seen({A: 0}) == []
    assert one.beat(A, working=[0], done=[1]) == (BeatAck([]), [])
    assert one.beat(A, done=[0]) == (BeatAck([]), [])
    assert one.all(ChunkState.COMMITTED) == [0, 1]
    assert one.seen({A: 0, B: 1}) == [(B, 2)]


def test_what_is_learned_is_said_once_whoever_says_it_and_how_often() -> None:
    one = Leading(3, committed=[2])
    one.seen({A: 2, B: 1})
    told = Learned(0, 60, [Skip("too short", 4, 7)], 999)
    _, acts = one.coordinator.beat(A, Beat(JOB, [], [told], []), NOW)
    assert acts == [told]
    _, acts = one.coordinator.beat(A, Beat(JOB, [], [told, Learned(9)], []), NOW)
    assert acts == []
    one.beat(B, done=[0, 1, 2])
    assert one.learned == [1]
    answer, acts = one.coordinator.beat(B, Beat(JOB, [], [Learned(0)], []), NOW)
    assert (answer, acts) == (BeatAck([]), [])


def test_beats_prolong_leases() -> None:
    one = Leading(1)
    one.seen({A: 1})
    for now in range(5, 60, 5):
        assert one.beat(A, working=[0], now=NOW + now) == (BeatAck([]), [])
        assert one.tick(NOW + now + 4) == []
    one.tick(NOW + 65)
    assert one.all(ChunkState.WAITING) == [0]


def test_done_and_failed_reach_the_schedule() -> None:
    one = Leading(4)
    one.seen({A: 2, B: 1})
    answer, orders = one.beat(A, done=[0], failed={1: "out of memory"})
    assert (answer, orders) == (BeatAck([]), [(A, 3)])
    assert one.all(ChunkState.COMMITTED) == [0]
    assert one.all(ChunkState.WAITING) == [1]
    assert one.tick(NOW + 1.9) == []
    assert one.tick(NOW + 2) == []  # A has failed on it
    assert one.beat(B, done=[2], now=NOW + 2) == (BeatAck([]), [(B, 1)])


def test_strangers_and_other_jobs_are_refused() -> None:
    one = Leading(2)
    one.seen({A: 1})
    assert one.beat(B, done=[0]) == (STRANGER, [])
    assert one.beat(A, done=[0], job=OTHER_JOB) == (STRANGER, [])
    assert one.all(ChunkState.COMMITTED) == []
    assert one.beat(A, done=[0]) == (BeatAck([]), [(A, 1)])


@pytest.mark.parametrize(
    "told",
    [
        Beat(JOB, [2], [], []),
        Beat(JOB, [0, 2], [], []),
        Beat(JOB, [], [Learned(2)], []),
        Beat(JOB, [], [], [(2, "it is none")]),
        Beat(JOB, [], [Learned((1 << 32) - 1)], []),
        Beat(JOB, list(range(MOST_SLOTS + 1)), [], []),
    ],
)
def test_chunks_that_no_job_has_are_refused(told: Beat) -> None:
    one = Leading(2)
    one.seen({A: 1})
    answer, acts = one.coordinator.beat(A, told, NOW)
    assert isinstance(answer, Refusal)
    assert answer.reason.startswith("chunk")
    assert acts == []
    assert one.all(ChunkState.LEASED) == [0]


def test_what_was_good_in_a_beat_counts_although_the_rest_is_not() -> None:
    one = Leading(2)
    one.seen({A: 1})
    answer, orders = one.beat(A, done=[0, 9])
    assert answer == Refusal("chunk 9 is not part of the job, which has 2 so far")
    assert orders == [(A, 1)]
    assert one.all(ChunkState.COMMITTED) == [0]


def test_what_is_somebody_elses_by_now_is_told_with_the_next_beat_once() -> None:
    one = Leading(1)
    one.seen({A: 1})
    one.tick(NOW + 10)  # A is silent
    assert one.seen({A: 1, B: 1}, NOW + 10) == [(B, 0)]
    assert one.beat(A, now=NOW + 11) == (BeatAck([0]), [])
    assert one.beat(A, now=NOW + 12) == (BeatAck([]), [])
    assert one.beat(B, working=[0], now=NOW + 12) == (BeatAck([]), [])
    assert one.beat(A, working=[0], now=NOW + 13) == (BeatAck([0]), [])  # it has not left it


def test_the_slower_of_two_is_told_to_leave() -> None:
    one = Leading(2)
    one.seen({A: 1, B: 1})
    one.beat(A, done=[0], now=NOW + 1)
    one.beat(B, working=[1], now=NOW + 9)
    assert one.tick(NOW + 18.5) == [(A, 1)]
    assert one.beat(A, done=[1], now=NOW + 18.6) == (BeatAck([]), [])
    assert one.beat(B, working=[1], now=NOW + 18.7) == (BeatAck([1]), [])
    assert one.over == [Over({})]


def test_who_is_to_learn_it_again_is_not_told_to_leave_it() -> None:
    one = Leading(1)
    one.seen({A: 1})
    one.tick(NOW + 10)
    assert one.beat(A, now=NOW + 10) == (BeatAck([]), [(A, 0)])
    assert one.beat(A, working=[0], now=NOW + 11) == (BeatAck([]), [])


def test_who_left_is_told_nothing_of_before_when_it_comes_back() -> None:
    one = Leading(1)
    one.seen({A: 1})
    one.tick(NOW + 10)
    one.seen({B: 1}, NOW + 11)
    one.seen({A: 1, B: 1}, NOW + 12)
    assert one.beat(A, now=NOW + 12) == (BeatAck([]), [])


def test_when_all_is_done_it_says_once_what_was_given_up_and_why() -> None:
    one = Leading(2)
    one.seen({A: 1, B: 1})
    one.beat(A, done=[0], now=NOW + 1)
    assert one.beat(B, failed={1: "no"}, now=NOW + 1) == (BeatAck([]), [])
    assert one.tick(NOW + 3) == [(A, 1)]
    assert one.over == []
    one.beat(A, failed={1: "no, not here"}, now=NOW + 4)
    assert one.over == [Over({1: ("no", "no, not here")})]
    one.tick(NOW + 5)
    one.beat(A, done=[0], now=NOW + 5)
    assert len(one.over) == 1


def test_what_was_given_up_and_brought_all_the_same_is_not_told_of() -> None:
    one = Leading(2)
    one.seen({A: 1, B: 1, C: 1, D: 1})
    for peer, chunk, now in ((A, 0, 1), (C, 0, 3)):
        one.beat(peer, failed={chunk: "no"}, now=NOW + now)
        one.tick(NOW + now + 2)
    assert one.all(ChunkState.FAILED) == [0]
    assert one.over == []
    one.beat(C, done=[0], now=NOW + 6)  # and yet
    one.beat(B, done=[1], now=NOW + 7)
    assert one.over == [Over({})]


def test_a_worker_whose_only_order_was_lost_is_heard_of_by_its_record() -> None:
    leading = Leading(1)
    assert leading.seen({A: 1}) == [(A, 0)]
    assert leading.tick(NOW + 11) == []  # silent: it never got the order, so it has nothing to say
    assert leading.all(ChunkState.WAITING) == [0]
    assert leading.do(leading.coordinator.announced(B, NOW + 12)) == []
    assert leading.do(leading.coordinator.announced(A, NOW + 12)) == [(A, 0)]


def test_who_has_no_room_is_asked_again_when_heard_of_and_nothing_is_given_up() -> None:
    leading = Leading(1)
    (call,) = [act for act in leading.coordinator.seen({A: 1}, NOW) if isinstance(act, Call)]
    for turn in range(10):  # far more often than a chunk may be lost
        acts = leading.coordinator.answered(call.number, Refusal("no slot is free"), NOW + turn)
        assert acts == []
        assert leading.all(ChunkState.WAITING) == [0]
        assert leading.tick(NOW + turn) == []
        acts = leading.coordinator.announced(A, NOW + turn)
        (call,) = [act for act in acts if isinstance(act, Call)]
    assert leading.all(ChunkState.LEASED) == [0]


def test_what_is_learned_is_brought_when_nobody_is_to_look_again() -> None:
    one = Leading(2)
    one.seen({P[0]: 1})
    assert one.came(0) == ([0], [])
    assert one.came(0) == ([0], [])  # the answer was lost
    assert one.all(ChunkState.LEASED) == [0]
    assert one.beat(P[0], done=[0]) == (BeatAck([]), [(P[0], 1)])
