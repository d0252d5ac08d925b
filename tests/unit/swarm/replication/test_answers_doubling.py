"""Answers of a peer whose shards are divided, or that counts other shards than whoever asks."""

import msgspec
import numpy as np
import pytest

from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.codec import plain, sheaf
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.division import DIVIDING
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Counting, Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    AskNouns,
    AskOrphans,
    AskPart,
    AskProof,
    Compare,
    Digests,
    Fetch,
    FetchCarried,
    Offer,
    Refusal,
)
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_mark import SALT_BYTES, mark
from giaann_p2p.swarm.wire.row_messages import AskColumn, Read, ReadSlice, Rows
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.helpers_swarm import LESSONS, LIMITS, SHARDS, applied, shards, store
from tests.unit.store.memory.test_columns import assert_row
from tests.unit.swarm.replication.test_answers import read

CHUNKS = range(6)
ALL = packed(shards(*range(SHARDS)), SHARDS)
NEURONS = sorted({neuron for chunk in CHUNKS for neuron in LESSONS.neurons(chunk)})
LAYOUTS = [Layout(shards=SHARDS << doublings) for doublings in range(4)]
FEW = [next(n for n in NEURONS if LAYOUTS[1].shard_of(*n) == shard) for shard in (0, 1, 4, 6)]
ROWS = store(chunks=CHUNKS).read(Question(NEURONS))


def states(count: int, *absent: int) -> list[ReplicaState]:
    return [ReplicaState.ABSENT if n in absent else ReplicaState.READY for n in range(count)]


def divided(times: int = 1) -> Store:
    held = store(chunks=CHUNKS)
    held.double(SHARDS << times)
    return held


def told(answer: Message, neurons: list[Neuron], doublings: int, gone: set[Neuron]) -> None:
    """Check that rows are those of a store that was never divided, or have moved."""
    assert isinstance(answer, Rows)
    layout = LAYOUTS[doublings]
    moved = unpacked(answer.moved, layout.shards).tolist()
    assert moved == sorted({layout.shard_of(*neuron) for neuron in gone})
    decode = plain.decode if answer.parcel.startswith(plain.MAGIC) else sheaf.decode
    found = decode(answer.parcel, LIMITS).read(Question(NEURONS))
    for neuron, row, right in zip(NEURONS, found, ROWS, strict=True):
        assert_row(row, right if neuron in {*neurons} - gone else None)


@pytest.mark.parametrize("neurons", [NEURONS, FEW], ids=["many", "few"])
@pytest.mark.parametrize("doublings", range(4))
@pytest.mark.parametrize("absent", [(), (1,), (0, 6)])
def test_rows_that_are_not_here_are_named_as_the_question_counts(
    neurons: list[Neuron], doublings: int, absent: tuple[int, ...]
) -> None:
    held, layout = divided(), LAYOUTS[1]
    answers = Answers(held, states(2 * SHARDS, *absent).__getitem__)
    gone = {neuron for neuron in neurons if layout.shard_of(*neuron) in absent}
    told(answers.to(read(*neurons), doublings), neurons, doublings, gone)


@pytest.mark.parametrize("neurons", [NEURONS, FEW], ids=["many", "few"])
@pytest.mark.parametrize("doublings", range(3))
@pytest.mark.parametrize("absent", [(), (1, 3)])
def test_rows_are_read_by_the_shards_of_the_decisions_until_these_follow(
    neurons: list[Neuron], doublings: int, absent: tuple[int, ...]
) -> None:
    held, layout = store(chunks=CHUNKS), LAYOUTS[0]
    answers = Answers(held, states(SHARDS, *absent).__getitem__)
    held.double(4 * SHARDS)
    gone = {neuron for neuron in neurons if layout.shard_of(*neuron) in absent}
    told(answers.to(read(*neurons), doublings), neurons, doublings, gone)


def test_rows_that_are_known_are_looked_up_by_the_shards_of_the_decisions() -> None:
    held, salt = store(chunks=CHUNKS), b"s" * SALT_BYTES
    answers = Answers(held, states(SHARDS, 1).__getitem__)
    held.double(4 * SHARDS)
    marks = b"".join(mark(row, salt) for row in ROWS if row)
    answer = answers.to(msgspec.structs.replace(read(*NEURONS), marks=marks, salt=salt), 0)
    assert isinstance(answer, Rows)
    here = [at for at, neuron in enumerate(NEURONS) if LAYOUTS[0].shard_of(*neuron) != 1]
    assert np.frombuffer(answer.same, "<u2").tolist() == here
    assert unpacked(answer.moved, SHARDS).tolist() == [1]


def test_shards_cannot_be_counted_in_any_way() -> None:
    answer = Answers(store(), states(SHARDS).__getitem__).to(read(*FEW), 16)
    assert isinstance(answer, Refusal)
    assert "cannot have been doubled 16 times" in answer.reason


COUNTING = [
    AskNouns(1),
    Compare(ALL, [b"other"] * SHARDS),
    Fetch(ALL, applied(1).to_bytes()),
    FetchCarried(bytes(16), 1, ALL, Peer(bytes(32))),
    Offer(1),
    AskPart(1, b"no digest", 0),
    AskDigests(ALL),
    AskProof(ALL, applied(*CHUNKS).to_bytes(), bytes(16)),
]


@pytest.mark.parametrize("question", COUNTING, ids=lambda one: type(one).__name__)
def test_other_questions_are_refused_until_the_decisions_follow(question: Message) -> None:
    assert isinstance(question, Counting)
    held = store(chunks=CHUNKS)
    answers = Answers(held, states(SHARDS).__getitem__)
    assert answers.to(question) != DIVIDING
    held.double(2 * SHARDS)
    assert answers.to(question) == DIVIDING
    assert DIVIDING.is_busy


@pytest.mark.parametrize(
    "question", [AskColumn(NEURONS[0].concept.to_bytes(8, "little")), AskOrphans(0)], ids=repr
)
def test_questions_without_shards_are_answered_all_the_time(question: Message) -> None:
    held = store(chunks=CHUNKS)
    answers = Answers(held, states(SHARDS).__getitem__)
    before = answers.to(question)
    held.double(2 * SHARDS)
    assert answers.to(question) == before


def test_what_was_divided_while_it_was_looked_at_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = store(chunks=CHUNKS)
    answers, content = Answers(held, states(SHARDS).__getitem__), held.content

    def late(shard: int) -> object:
        if shard == 2:
            held.double(2 * SHARDS)
        return content(shard)

    monkeypatch.setattr(held, "content", late)
    assert answers.to(AskDigests(ALL)) == DIVIDING


def test_decisions_that_follow_answer_by_the_new_shards() -> None:
    held = divided()
    every = packed(np.arange(2 * SHARDS, dtype=np.uint16), 2 * SHARDS)
    answers = Answers(held, states(2 * SHARDS).__getitem__, shards=2 * SHARDS)
    found = answers.to(AskDigests(every))
    assert isinstance(found, Digests)
    assert len(found.found) == 2 * SHARDS
    whole = Answers(store(chunks=CHUNKS), states(SHARDS).__getitem__).to(AskDigests(ALL))
    assert isinstance(whole, Digests)
    for n in range(SHARDS):
        parts = found.found[n], found.found[n + SHARDS]
        assert sum(part.connections for part in parts) == whole.found[n].connections
        assert {part.chunks for part in parts} == {whole.found[n].chunks}


def test_what_is_captured_stays_and_less_is_noticed() -> None:
    now = states(SHARDS)
    answers = Answers(store(chunks=CHUNKS), now.__getitem__)
    before = answers.captured(read(*NEURONS))
    assert not answers.serves_less_than(before)
    now[2] = ReplicaState.SYNCING
    assert answers.serves_less_than(before)
    told(before.to(read(*NEURONS)), NEURONS, 0, set())


@pytest.mark.parametrize(
    ("question", "asked_for"),
    [
        (read(FEW[1]), {1}),
        (ReadSlice(read(FEW[2]).concepts, read(FEW[2]).features, 1, 0), {0}),
        (Compare(packed(shards(2, 3), SHARDS), [b"other"] * 2), {2, 3}),
        (AskDigests(packed(shards(1), SHARDS)), {1}),
        (Read(b"123", b""), set()),
        (Compare(b"rubbish", []), set()),
    ],
)
def test_of_all_shards_only_those_that_a_question_is_about_are_looked_at(
    question: Message, asked_for: set[int]
) -> None:
    looked_at, now = list[int](), states(SHARDS)

    def state_of(shard: int) -> ReplicaState:
        looked_at.append(shard)
        return now[shard]

    answers = Answers(store(chunks=CHUNKS), state_of)
    before = answers.captured(question)
    assert {*looked_at} == asked_for
    assert before.to(question) == Answers(store(chunks=CHUNKS), now.__getitem__).to(question)
    looked_at.clear()
    for other in {*range(SHARDS)} - asked_for:
        now[other] = ReplicaState.ABSENT
    assert not answers.serves_less_than(before)
    assert {*looked_at} == asked_for
