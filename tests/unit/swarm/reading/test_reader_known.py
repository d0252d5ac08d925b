"""Reading rows that the reader has cached: what has not changed is confirmed by its mark."""

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.delta import total
from giaann_p2p.model.rows import Answer, DeltaRows, Neuron, Question, Row
from giaann_p2p.store.codec import plain
from giaann_p2p.swarm.reading.disputes import Lied
from giaann_p2p.swarm.reading.known_rows import Known, Marking
from giaann_p2p.swarm.reading.reader import Reader
from giaann_p2p.swarm.reading.row_vote import NOTHING, Verify
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_mark import MARK_BYTES, SALT_BYTES, mark
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from tests.helpers_swarm import LAYOUT, LESSONS, LIMITS, NOW, A, B, C, sent, store
from tests.unit.swarm.reading.helpers_row_vote import SALT, SOME, World
from tests.unit.swarm.reading.test_reader import NEURONS, NONE, SAME, STORE, Reading

SECRET = b"only this reader knows it"
TRUE = DeltaRows(total([LESSONS.delta(chunk) for chunk in range(4)]))


def known_of(rows: DeltaRows, neurons: list[Neuron]) -> dict[Neuron, Row]:
    found = rows.read(Question(neurons))
    return {row.neuron: row for row in found if row is not None and len(row.strength)}


KNOWN = known_of(TRUE, NEURONS)
OLD = {
    neuron: row if n % 2 else replace(row, strength=row.strength // 2)
    for n, (neuron, row) in enumerate(KNOWN.items())
}
"""Rows of which every other one has grown since."""
LONG = [neuron for neuron in SAME if neuron in KNOWN]


class Knowing(Reading):
    """A reader that knows some rows."""

    def __init__(self, *ready: Peer, secret: bytes = SECRET, least: int = 1) -> None:
        super().__init__(*ready)
        self.reader = Reader(LIMITS, self.around, 4.0, 15.0, NOTHING, Marking(secret, least))

    def ask(self, neurons: list[Neuron], known: Known) -> Read:
        """Ask, and return the message to the first peer."""
        _, acts = self.reader.read(Question(neurons), NOW, known)
        self.do(acts)
        return self.message()

    def message(self, at: int = 0) -> Read:
        message = self.calls[at].message
        assert isinstance(message, Read)
        return message


def neurons_of(message: Read) -> list[Neuron]:
    concepts, features = (
        np.frombuffer(data, "<u8").tolist() for data in (message.concepts, message.features)
    )
    return list(map(Neuron, concepts, features))


def test_a_row_that_has_not_changed_is_the_known_one() -> None:
    one = Knowing(A)
    one.ask(NEURONS, KNOWN)
    answer = Answers(STORE, lambda shard: ReplicaState.READY).to(sent(one.calls[0].message))
    assert isinstance(answer, Rows)
    assert len(answer.same) == 2 * len(KNOWN)
    one.answer(sent(answer))
    assert one.rows is not None
    for neuron, row in zip(NEURONS, one.rows, strict=True):
        assert row is not None
        assert neuron not in KNOWN or row is KNOWN[neuron]
    assert (one.around.suspected, one.around.trusted) == ([], [A])


def test_a_row_that_has_changed_is_the_new_one() -> None:
    one = Knowing(A)
    message = one.ask(NEURONS, OLD)
    assert len(message.marks) == MARK_BYTES * len(OLD)
    answer = Answers(STORE, lambda shard: ReplicaState.READY).to(sent(message))
    assert isinstance(answer, Rows)
    assert len(answer.same) == 2 * (len(OLD) // 2)
    one.answer(sent(answer))
    assert one.rows is not None
    for row, wanted in zip(one.rows, TRUE.read(Question(NEURONS)), strict=True):
        assert row is not None
        assert wanted is not None
        assert (row.count, row.strength.sum()) == (wanted.count, wanted.strength.sum())


def test_each_mark_is_that_of_its_neuron_and_those_with_marks_come_first() -> None:
    one = Knowing(A)
    some = {neuron: KNOWN[neuron] for neuron in LONG[1::2]}
    message = one.ask(SAME, {**some, FOREIGN: KNOWN[FOREIGN]})
    asked = neurons_of(message)
    assert sorted(asked) == sorted(SAME)
    assert len(message.salt) == SALT_BYTES
    marked = asked[: len(some)]
    assert {*marked} == {*some}
    assert message.marks == b"".join(mark(KNOWN[neuron], message.salt) for neuron in marked)


FOREIGN = next(neuron for neuron in KNOWN if neuron not in SAME)


def test_short_rows_have_no_marks() -> None:
    lengths = {neuron: len(row.strength) for neuron, row in KNOWN.items()}
    least = sorted(lengths.values())[len(lengths) // 2]
    message = Knowing(A, least=least).ask(NEURONS, KNOWN)
    count = sum(length >= least for length in lengths.values())
    assert 0 < count < len(lengths)
    assert len(message.marks) == MARK_BYTES * count


def test_without_a_secret_or_known_rows_there_are_no_marks() -> None:
    for secret, known in ((b"", KNOWN), (SECRET, {}), (SECRET, {FOREIGN: KNOWN[FOREIGN]})):
        message = Knowing(A, secret=secret).ask(SAME, known)
        assert (message.marks, message.salt) == (b"", b"")


def test_each_call_has_a_salt_of_its_own() -> None:
    one, salts = Knowing(A, B), set[bytes]()
    for _ in range(10):
        salts.add(one.ask(SAME, KNOWN).salt)
        one.answer(None)  # so the other one is asked
        salts.add(one.message().salt)
        one.serve()
    assert len(salts) == 20
    assert Knowing(A, secret=b"another").ask(SAME, KNOWN).salt not in salts


EMPTY = Rows(plain.MAGIC, NONE)


def at(*positions: int) -> Rows:
    return replace(EMPTY, same=np.array(positions, "<u2").tobytes())


def with_row(answer: Rows) -> Rows:
    """Return an answer that has all rows as well."""
    named = np.array(LONG, np.uint64)
    return replace(answer, parcel=STORE.rows(named[:, 0], named[:, 1]))


LIES = {
    "one whose mark was not sent": at(0, len(LONG)),
    "one far beyond": at(65535),
    "one twice": at(1, 1),
    "not in order": at(1, 0),
    "half a position": replace(EMPTY, same=b"\0"),
    "and it is sent as well": with_row(at(0)),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_about_what_is_the_same_leads_to_suspicion_and_another_peer(name: str) -> None:
    one = Knowing(A, B)
    one.ask(LONG, KNOWN)
    (first,) = one.asked
    one.answer(LIES[name])
    assert (one.told, one.around.suspected, one.around.trusted) == ([], [first], [])
    (second,) = one.asked
    assert second != first
    one.serve()
    assert one.rows == [KNOWN[neuron] for neuron in LONG]


def test_what_is_said_to_be_the_same_without_any_marks_is_a_lie() -> None:
    for known in (dict[Neuron, Row](), {FOREIGN: KNOWN[FOREIGN]}):
        one = Knowing(A, B)
        one.ask(SAME, known)
        (first,) = one.asked
        one.answer(at(0))
        assert (one.told, one.around.suspected) == ([], [first])


def test_what_is_the_same_in_a_shard_that_moved_does_not_count() -> None:
    one = Knowing(A, B)
    one.ask(LONG, KNOWN)
    moved = Answers(STORE, lambda shard: ReplicaState.ABSENT).to(one.calls[0].message)
    assert isinstance(moved, Rows)
    one.answer(replace(moved, same=at(0).same))
    assert (one.told, len(one.asked)) == ([], 1)


# Among liars.


class Swarm(World):
    """Three peers, of which some confirm whatever they are asked."""

    def __init__(self, verify: Verify, *confirming: Peer, held: range = range(4)) -> None:
        super().__init__({}, verify, {A: 0.001, B: 0.008, C: 0.022})
        self.confirming, self.marks = confirming, list[tuple[Peer, int]]()
        self.around.capacities = dict.fromkeys([A, B, C], 1 << 30)
        self.around.ready_at = {shard: [A, B, C] for shard in range(LAYOUT.shards)}
        self.answers = Answers(store(chunks=held), lambda shard: ReplicaState.READY)
        self.reader = Reader(LIMITS, self.around, 2.0, 15.0, verify, Marking(SECRET, 1))
        for peer, seconds in self.took.items():
            self.reader.latencies.took(peer, seconds + 0.0005, NOW)

    def answer_to(self, peer: Peer, message: Read) -> Rows:
        count = len(message.marks) // MARK_BYTES
        self.marks.append((peer, count))
        answer = self.answers.to(message)
        if peer in self.confirming and count:
            rest = neurons_of(message)[count:]
            rows = [row for row in TRUE.read(Question(rest)) if row]
            answer = replace(at(*range(count)), parcel=plain.encode(rows))
        assert isinstance(answer, Rows)
        return answer

    def read_known(self, neurons: list[Neuron], known: Known) -> Answer | None:
        number, acts = self.reader.read(Question(neurons), self.now, known)
        self._do(acts)
        while number not in self.told and self._step(self.now + 16):
            pass
        return self.told[number].rows


def false(row: Row) -> Row:
    return replace(row, count=row.count + 1, strength=row.strength + 5)


FALSE = {neuron: false(row) for neuron, row in KNOWN.items()}
MANY = list(KNOWN)


def counts(rows: Answer | None) -> list[int]:
    assert rows is not None
    return [row.count for row in rows if row]


RIGHT = counts(list(KNOWN.values()))


def test_a_false_row_that_was_cached_is_not_confirmed_by_honest_peers() -> None:
    one = Swarm(NOTHING)
    assert counts(one.read_known(MANY, FALSE)) == RIGHT


def test_put_to_the_vote_a_false_row_is_not_confirmed_by_one_that_confirms_all() -> None:
    one = Swarm(Verify(1.0), A)
    assert counts(one.read_known(MANY, FALSE)) == RIGHT
    assert one.reader.disputes.opened > 0
    one.run(20)
    assert {said.peer for said in one.lied} == {A}


def test_put_to_the_vote_true_rows_are_confirmed_by_a_majority_alone() -> None:
    one = Swarm(Verify(1.0))
    rows = one.read_known(MANY, KNOWN)
    assert rows is not None
    assert all(row is KNOWN[neuron] for neuron, row in zip(MANY, rows, strict=True))
    assert [peer for peer, _ in one.marks] == [A, B]
    one.run(100)
    assert (one.lied, one.reader.disputes.opened) == ([], 0)


def test_a_sample_finds_one_that_confirms_all() -> None:
    one = Swarm(Verify(0.5, SALT), A)
    assert counts(one.read_known(MANY, FALSE)) != RIGHT
    one.run(20)
    assert {said.peer for said in one.lied} == {A}
    assert all(isinstance(said, Lied) and not said.behind for said in one.lied)


def test_comparisons_and_disputes_ask_for_the_rows_themselves() -> None:
    one = Swarm(SOME, A)
    for _ in range(10):
        one.read_known(MANY, FALSE)
        one.run(1)
    one.run(20)
    assert one.reader.disputes.opened > 0
    assert {count for peer, count in one.marks if peer != A} >= {0}
    first = [count for peer, count in one.marks if count]
    assert len(first) <= 10


def test_true_rows_that_are_confirmed_are_compared_as_if_they_were_sent() -> None:
    one = Swarm(Verify(0.5, SALT))
    for _ in range(5):
        assert counts(one.read_known(MANY, KNOWN)) == RIGHT
        one.run(1)
    one.run(100)
    assert one.reader.compared > 0
    assert (one.lied, one.reader.disputes.opened) == ([], 0)


def test_a_cached_row_that_has_grown_since_blames_nobody() -> None:
    for verify in (Verify(1.0), Verify(0.5, SALT)):
        one = Swarm(verify)
        assert counts(one.read_known(MANY, OLD)) == RIGHT
        one.run(100)
        assert one.lied == []
