"""Reading rows: the quickest peer first, another one when it is late, fails or lies."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from giaann_p2p.model.delta import total
from giaann_p2p.model.rows import DeltaRows, Neuron, Question, Row
from giaann_p2p.store.codec.parcel import Limits, encode
from giaann_p2p.store.codec.plain import MAGIC
from giaann_p2p.store.codec.sheaf import SheafRows
from giaann_p2p.store.codec.sheaf import decode as decode_sheaf
from giaann_p2p.swarm.reading import row_calls
from giaann_p2p.swarm.reading.reader import Answered, ReadAction, Reader
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import of_answer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import BUSY, Part, Refusal
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_messages import MOST_READ, Read, Rows
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import (
    LAYOUT,
    LESSONS,
    LIMITS,
    MESSAGES,
    NOW,
    SHARDS,
    A,
    Around,
    B,
    C,
    sent,
    shards,
    store,
)
from tests.unit.store.memory.test_columns import assert_row

CHUNKS = range(4)
STORE = store(chunks=CHUNKS)
ANSWERS = Answers(STORE, lambda shard: ReplicaState.READY)
NEURONS = sorted({neuron for chunk in CHUNKS for neuron in LESSONS.neurons(chunk)})
HOME = min(LAYOUT.shard_of(*neuron) for neuron in NEURONS)
SAME = [neuron for neuron in NEURONS if LAYOUT.shard_of(*neuron) == HOME][:4]
"""Some neurons of one shard."""
NONE = packed(shards(), SHARDS)


class Reading:
    """A reader, with what it asked and was answered."""

    def __init__(self, *ready: Peer, patience: float = 15.0) -> None:
        self.around = Around()
        self.around.ready_at = {shard: list(ready) for shard in range(SHARDS)}
        self.reader = Reader(LIMITS, self.around, 4.0, patience)
        self.calls: list[Call] = []
        self.told: list[Answered] = []

    def do(self, acts: list[ReadAction]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self.calls.append(act)
            else:
                self.told.append(act)

    def read(self, neurons: list[Neuron], now: float = NOW) -> int:
        number, acts = self.reader.read(Question(neurons), now)
        self.do(acts)
        return number

    def answer(self, message: Message | None, now: float = NOW, at: int = 0) -> None:
        call = self.calls.pop(at)
        self.do(self.reader.answered(call.number, message, now))

    def serve(self, now: float = NOW, at: int = 0) -> None:
        """Answer as an honest peer does."""
        self.answer(sent(ANSWERS.to(sent(self.calls[at].message))), now, at)

    @property
    def asked(self) -> list[Peer]:
        return [call.peer for call in self.calls]

    @property
    def rows(self) -> list[Row | None] | None:
        (said,) = self.told
        return said.rows


def assert_rows(found: list[Row | None] | None, neurons: list[Neuron]) -> None:
    assert found is not None
    known = DeltaRows(total([LESSONS.delta(chunk) for chunk in CHUNKS]))
    for row, wanted in zip(found, known.read(Question(neurons)), strict=True):
        assert (row is None) == (wanted is None)
        if row is not None and wanted is not None:
            assert_row(row, wanted)


def test_rows_come_in_the_order_of_the_question() -> None:
    one = Reading(A)
    wanted = [*NEURONS[::-1], Neuron(5, 0), *NEURONS[:3]]  # one that is not, and some twice
    number = one.read(wanted)
    assert one.asked == [A]  # one message for all shards
    one.serve()
    assert_rows(one.rows, wanted)
    assert (one.told[0].number, one.told[0].missing) == (number, [])
    assert len(one.reader) == 0
    assert one.around.trusted == [A]


def test_shards_of_different_peers_are_put_together() -> None:
    one = Reading(A)
    for shard in range(SHARDS):
        one.around.ready_at[shard] = [A, B][shard % 2 :][:1]
    one.read(NEURONS)
    for call in one.calls:
        assert isinstance(call.message, Read)
        concepts, features = (
            np.frombuffer(data, "<u8") for data in (call.message.concepts, call.message.features)
        )
        homes = LAYOUT.shards_of(concepts, features) % 2
        assert set(homes.tolist()) == {int(call.peer == B)}
    while one.calls:
        assert one.told == []
        one.serve()
    assert_rows(one.rows, NEURONS)


def test_who_owns_a_shard_is_asked_before_one_who_still_has_it() -> None:
    one = Reading(C)
    for _ in range(5):  # C is quick
        one.read(SAME)
        one.serve(NOW + 0.001)
    one.around.capacities = dict.fromkeys([A, B], 1 << 30)
    for ready, first in (([A, C], A), ([C, B], B), ([C], C)):
        one.around.ready_at[HOME] = ready
        one.calls.clear()
        one.read(SAME)
        assert one.asked == [first]
    one.around.ready_at[HOME] = [A, C]
    one.calls.clear()
    one.read(SAME)
    one.answer(None)
    assert one.asked == [C]


def test_nothing_is_read_at_once() -> None:
    one = Reading(A)
    one.read([])
    assert one.rows == []


def asked_at_once(call: Call) -> int:
    """Return for how many neurons a peer is asked; it answers no more than a message carries."""
    assert isinstance(call.message, Read)
    count = len(call.message.concepts) // 8
    assert 0 < count <= MOST_READ
    return count


def neurons_of(home: int, count: int) -> list[Neuron]:
    """Return some neurons of a shard that are, and others that are not."""
    there = [neuron for neuron in NEURONS if LAYOUT.shard_of(*neuron) == home]
    concept = there[0].concept
    return [*(Neuron(concept, 1_000_000 + at) for at in range(count - len(there))), *there]


def test_more_neurons_of_a_shard_than_a_message_carries_are_asked_in_turns() -> None:
    one = Reading(A)
    wanted = neurons_of(HOME, 2 * MOST_READ + 5)
    one.read(wanted)
    assert [asked_at_once(call) for call in one.calls] == [MOST_READ, MOST_READ, 5]
    for _ in range(3):
        assert one.told == []
        one.serve(at=len(one.calls) - 1)
    assert_rows(one.rows, wanted)


def test_more_neurons_of_a_peer_than_a_message_carries_are_asked_in_turns() -> None:
    one = Reading(A, B)
    each = MOST_READ // 2 - 1  # of two shards, but not of three
    homes = sorted({LAYOUT.shard_of(*neuron) for neuron in NEURONS})
    assert len(homes) == 4
    wanted = [neuron for home in homes for neuron in neurons_of(home, each)]
    one.read(wanted)
    assert one.asked == [A, A]
    assert [asked_at_once(call) for call in one.calls] == [2 * each, 2 * each]
    one.serve()
    assert one.told == []
    one.answer(None)  # the other half alone is asked of another
    assert one.asked == [B]
    assert asked_at_once(one.calls[0]) == 2 * each
    one.serve()
    assert_rows(one.rows, wanted)


@pytest.mark.parametrize("more", [0, 1])
def test_as_many_as_a_message_carries_go_into_one_and_no_more(more: int) -> None:
    one = Reading(A)
    half = MOST_READ // 2
    first, second = sorted({LAYOUT.shard_of(*neuron) for neuron in NEURONS})[:2]
    wanted = [*neurons_of(first, half), *neurons_of(second, half + more)]
    one.read(wanted)
    counts = [asked_at_once(call) for call in one.calls]
    assert counts == ([half, half + 1] if more else [MOST_READ])
    while one.calls:
        one.serve()
    assert_rows(one.rows, wanted)


def test_the_quickest_is_asked_first_and_who_is_unknown_is_tried() -> None:
    one = Reading(A, B, C)
    one.reader.latencies.took(A, 0.05, NOW)
    one.reader.latencies.took(B, 0.02, NOW)
    one.reader.latencies.took(C, 0.06, NOW)
    one.read(SAME)
    assert one.asked == [B]
    one = Reading(A, B)
    one.reader.latencies.took(A, 0.2, NOW)
    one.read(SAME)
    assert one.asked == [B]


def test_peers_that_are_about_as_quick_share_the_reads() -> None:
    one = Reading(A, B, C)
    for peer, seconds in ((A, 0.02), (B, 0.03), (C, 0.06)):
        one.reader.latencies.took(peer, seconds, NOW)
    asked = Counter[Peer]()
    for _ in range(100):
        one.read(SAME)
        asked.update(one.asked)
        one.serve(NOW + 0.02)
    assert asked.keys() == {A, B}
    assert min(asked.values()) > 30


def test_the_parts_of_a_question_that_may_go_to_one_peer_go_to_one() -> None:
    one = Reading(A, B)
    for _ in range(20):
        one.read(NEURONS)
        assert len(one.asked) == 1
        one.serve()


@pytest.mark.parametrize("kind", ["in doubt", "not ready", "no owner"])
def test_a_peer_of_another_kind_has_no_share(kind: str) -> None:
    one = Reading(A, B)
    if kind == "in doubt":
        one.around.unreachable = {B}
    else:
        one.around.capacities = dict.fromkeys([A] if kind == "no owner" else [A, B], 1 << 30)
    if kind == "not ready":
        one.around.ready_at[HOME] = [A]
    for _ in range(20):
        one.read(SAME)
        assert one.asked == [A]
        one.serve()


def test_a_peer_that_hangs_is_passed_over_at_once() -> None:
    one = Reading(A, B)
    for peer in (A, B):
        one.reader.latencies.took(peer, 0.02, NOW)
    one.read(SAME)
    (hangs,) = one.asked
    one.do(one.reader.tick(NOW + 0.02))
    one.serve(NOW + 0.03, at=1)
    for _ in range(20):
        one.read(SAME, NOW + 0.03)
        assert one.asked[1:] == [A if hangs == B else B]
        one.serve(NOW + 0.04, at=1)
    one.serve(NOW + 0.05)
    one.read(SAME, NOW + 0.05)
    one.read(SAME, NOW + 0.05)
    assert {*one.asked} == {A, B}  # it is asked again


def test_a_busy_peer_is_asked_once_a_second_and_not_suspected() -> None:
    one = Reading(A, B)
    busy = list[float]()
    for tenth in range(25):
        now = NOW + tenth / 10
        one.read(SAME, now)
        if one.asked == [A]:
            busy.append(now)
            one.answer(Refusal(f"{BUSY}: later"), now + 0.001)
        assert one.asked == [B]
        one.serve(now + 0.02)
    assert len(busy) == 3
    assert all(later - before > 1 for before, later in pairwise(busy))
    assert one.around.suspected == []


def test_where_all_are_busy_all_are_asked_again_and_again() -> None:
    one = Reading(A, B)
    one.read(SAME)
    for turn in range(3):
        for _ in range(2):
            one.answer(Refusal(BUSY), NOW + turn)
        assert one.asked == []
        one.do(one.reader.tick(NOW + turn + 0.2))
    one.serve(NOW + 3)
    assert_rows(one.rows, SAME)


def test_when_one_is_late_another_is_asked_and_the_first_answer_counts() -> None:
    one = Reading(A, B)
    one.reader.latencies.took(A, 0.01, NOW)
    one.reader.latencies.took(B, 0.05, NOW)
    one.read(SAME)
    when = one.reader.next_tick(NOW)
    assert NOW < when < NOW + 0.1
    one.do(one.reader.tick(when - 0.001))
    assert one.asked == [A]
    one.do(one.reader.tick(when))
    assert one.asked == [A, B]
    one.serve(NOW + 0.2, at=1)
    assert_rows(one.rows, SAME)
    one.serve(NOW + 0.3)  # too late, and no harm
    assert len(one.told) == 1
    assert one.reader.latencies.late(A, NOW) > 0.2 or one.reader.latencies.usual(A, NOW) > 0.005


@pytest.mark.parametrize("answer", [None, Refusal("no"), Refusal(BUSY), Rows(MAGIC, b"\1")])
def test_when_one_has_it_not_another_is_asked_at_once(answer: Message | None) -> None:
    one = Reading(A, B)
    one.read(SAME)
    one.answer(answer, NOW + 0.01)
    assert one.asked == [B]
    one.serve(NOW + 0.02)
    assert_rows(one.rows, SAME)
    alive = isinstance(answer, Rows) or answer == Refusal(BUSY)
    assert one.around.suspected == ([] if alive else [A])


def test_only_what_moved_is_asked_of_another() -> None:
    one = Reading(A, B)
    one.read(NEURONS)
    there = {
        shard: ReplicaState.SYNCING if shard == HOME else ReplicaState.READY
        for shard in range(SHARDS)
    }
    one.answer(Answers(STORE, there.__getitem__).to(one.calls[0].message))
    (call,) = one.calls
    assert (call.peer, one.told) == (B, [])
    assert isinstance(call.message, Read)
    concepts = np.frombuffer(call.message.concepts, "<u8").tolist()
    assert set(concepts) == {n.concept for n in NEURONS if LAYOUT.shard_of(*n) == HOME}
    one.serve()
    assert_rows(one.rows, NEURONS)


def test_all_are_tried_anew_after_a_while() -> None:
    one = Reading(A, B)
    one.read(SAME)
    one.answer(None)
    one.answer(None)
    assert one.calls == []
    assert one.reader.next_tick(NOW) == NOW + 0.2
    one.do(one.reader.tick(NOW + 0.19))
    assert one.calls == []
    one.do(one.reader.tick(NOW + 0.2))
    one.serve(NOW + 0.3)
    assert_rows(one.rows, SAME)


def test_who_has_not_answered_yet_is_not_asked_again() -> None:
    one = Reading(A)
    one.read(SAME)
    for tenth in range(1, 30):
        one.do(one.reader.tick(NOW + tenth / 10))
    assert one.asked == [A]
    one.answer(None, NOW + 4)  # it will not, now
    one.do(one.reader.tick(NOW + 5))
    assert one.asked == [A]
    one.serve(NOW + 5.1)
    assert_rows(one.rows, SAME)


def test_when_the_time_is_up_it_says_what_is_missing() -> None:
    one = Reading(A, patience=5.0)
    one.around.ready_at[HOME] = []
    number = one.read(NEURONS)
    one.serve()
    for tenths in range(1, 50):
        one.do(one.reader.tick(NOW + tenths / 10))
        assert one.told == []
        assert one.reader.next_tick(NOW + tenths / 10) <= NOW + 5
    one.do(one.reader.tick(NOW + 5))
    assert one.told == [Answered(number, None, [HOME])]
    assert len(one.reader) == 0


def test_who_gives_up_has_nobody_asked_further() -> None:
    one = Reading(A, B)
    number, other = one.read(SAME), one.read(SAME[:1])
    one.reader.give_up(number)
    one.reader.give_up(number)  # it is done
    assert len(one.reader) == 1
    assert one.asked == [A, B]  # they share
    one.answer(None)  # of the question that was given up
    assert one.asked == [B]
    one.serve()
    assert [said.number for said in one.told] == [other]
    assert one.reader.next_tick(NOW) == NOW + 15.0


def test_who_could_not_be_reached_is_asked_when_nobody_else_is_left() -> None:
    one = Reading(A, B)
    one.reader.latencies.took(A, 0.001, NOW)
    one.around.unreachable = {A}
    one.read(SAME)
    assert one.asked == [B]
    one.around.unreachable = {A, B}
    one.answer(None)
    assert one.asked == [A]
    one.serve()
    assert_rows(one.rows, SAME)


def test_an_owner_that_says_nothing_of_a_shard_is_asked_after_those_that_have_it() -> None:
    one = Reading(C)
    one.around.capacities = dict.fromkeys([A, B], 1 << 30)
    one.reader.latencies.took(A, 0.001, NOW)
    one.reader.latencies.took(B, 0.002, NOW)
    one.read(SAME)
    assert one.asked == [C]
    one.answer(None)
    assert one.asked == [A]  # it may have it by now
    one.answer(Rows(encode(total([])), packed(shards(HOME), SHARDS)))
    assert one.asked == [B]
    one.serve()
    assert_rows(one.rows, SAME)


def test_where_nobody_is_known_to_have_a_shard_its_owners_are_asked_again_and_again() -> None:
    one = Reading()
    one.around.capacities = {A: 1 << 30}
    one.read(SAME)
    for turn in range(3):
        assert one.asked == [A]
        one.answer(Rows(encode(total([])), packed(shards(HOME), SHARDS)), NOW + turn)
        assert one.asked == []
        one.do(one.reader.tick(NOW + turn + 0.2))
    one.serve(NOW + 3)
    assert_rows(one.rows, SAME)


def test_who_is_in_doubt_is_asked_after_owners_that_say_nothing_of_a_shard() -> None:
    one = Reading(A, C)
    one.around.capacities = {B: 1 << 30}
    one.around.unreachable = {A}
    one.read(SAME)
    for peer in (C, B, A):
        assert one.asked == [peer]
        one.answer(None)


def test_questions_go_side_by_side() -> None:
    one = Reading(A)
    first, second = one.read(SAME[:1]), one.read(SAME[1:2])
    assert first != second
    one.serve(at=1)
    one.serve()
    assert [said.number for said in one.told] == [second, first]
    assert one.reader.next_tick(NOW) == NOW + 15


def parcel_of(*neurons: Neuron) -> bytes:
    named = np.array(neurons, np.uint64)
    return STORE.rows(named[:, 0], named[:, 1])


FOREIGN = next(neuron for neuron in NEURONS if neuron not in SAME)
NAMELESS = replace(LESSONS.content(HOME, CHUNKS), names={})
LIES: dict[str, Message | None] = {
    "none in time": None,
    "of another kind": Part(b""),
    "no parcel": Rows(b"none", NONE),
    "half a parcel": Rows(parcel_of(*SAME)[:-1], NONE),
    "no set of shards": Rows(parcel_of(*SAME), b""),
    "a longer set of shards": Rows(parcel_of(*SAME), b"\2\1\1"),
    "rows that were not asked for": Rows(parcel_of(*SAME, FOREIGN), NONE),
    "rows without names": Rows(encode(NAMELESS), NONE),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_leads_to_suspicion_and_another_peer(name: str) -> None:
    one = Reading(A, B)
    wanted = [n for n in NEURONS if LAYOUT.shard_of(*n) == HOME] if "names" in name else SAME
    one.read(wanted)
    one.answer(LIES[name])
    assert (one.told, one.around.suspected, one.around.trusted) == ([], [A], [])
    assert one.asked == [B]
    one.serve()
    assert_rows(one.rows, wanted)


def test_a_short_answer_is_read_as_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[Limits]()

    def decode(data: bytes, limits: Limits) -> SheafRows:
        found.append(limits)
        return decode_sheaf(data, limits)

    monkeypatch.setattr(row_calls, "decode_sheaf", decode)
    one = Reading(A)
    one.read(SAME)
    parcel = parcel_of(*SAME)
    one.answer(Rows(parcel, NONE))
    assert found == [of_answer(LIMITS, len(parcel))]
    assert_rows(one.rows, SAME)


def test_any_kind_of_message_but_one_is_suspicious() -> None:
    for message in MESSAGES:
        if not isinstance(message, Rows):
            one = Reading(A)
            one.read(SAME)
            one.answer(message)
            assert (one.told, one.around.suspected) == ([], [A])


def test_answers_to_nothing_are_nothing() -> None:
    one = Reading(A)
    for message in (*MESSAGES, None):
        assert one.reader.answered(99, message, NOW) == []
