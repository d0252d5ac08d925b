"""Answers to reads of rows that the reader knows: what has not changed is not sent."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.rows import Name, Neuron, Question, empty_row
from giaann_p2p.store.codec import plain, sheaf
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.row_mark import mark
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from giaann_p2p.swarm.wire.shardset import unpacked
from tests.helpers_swarm import LAYOUT, LIMITS, SHARDS, store
from tests.unit.swarm.replication.test_answers import NEURONS, answering, read

SALT = bytes(range(16))


def marked(held: Store, count: int, *neurons: Neuron, salt: bytes = SALT) -> Read:
    """Return a read of neurons, with the marks of the rows that a store has of the first ones."""
    rows = [row for row in held.read(Question(list(neurons[:count]))) if row]
    assert len(rows) == count
    return replace(read(*neurons), marks=b"".join(mark(row, salt) for row in rows), salt=salt)


def assert_told(said: Message, same: list[int], others: list[Neuron], held: Store) -> None:
    """Check which rows an answer calls the same, and that it has the others and no more."""
    assert isinstance(said, Rows)
    assert np.frombuffer(said.same, "<u2").tolist() == same
    decoded = plain.decode if said.parcel.startswith(plain.MAGIC) else sheaf.decode
    found = decoded(said.parcel, LIMITS)
    assert found.neurons == {*others}
    for row, wanted in zip(found.read(Question(others)), held.read(Question(others)), strict=True):
        assert row is not None
        assert wanted is not None
        assert (row.count, row.strength.sum()) == (wanted.count, wanted.strength.sum())


@pytest.mark.parametrize("count", [1, 3, 6, 10])
def test_rows_with_the_mark_in_the_read_are_left_out(count: int) -> None:
    held, asked = store(chunks=[1, 2]), NEURONS[:10]
    said = answering(held).to(marked(held, count, *asked))
    assert_told(said, list(range(count)), asked[count:], held)


def test_rows_that_have_changed_are_told() -> None:
    held, before = store(chunks=range(1, 12)), store(chunks=[1])
    rows = zip(*(one.read(Question(NEURONS)) for one in (held, before)), strict=True)
    same = [at for at, (now, then) in enumerate(rows) if now and then and now.count == then.count]
    assert 0 < len(same) < len(NEURONS)
    said = answering(held).to(marked(before, len(NEURONS), *NEURONS))
    others = [neuron for at, neuron in enumerate(NEURONS) if at not in same]
    assert_told(said, same, others, held)


def test_a_mark_with_another_salt_is_another() -> None:
    held, asked = store(chunks=[1, 2]), NEURONS[:5]
    question = replace(marked(held, 5, *asked), salt=bytes(16))
    assert_told(answering(held).to(question), [], asked, held)


@pytest.mark.parametrize("letter", "as")
def test_rows_of_shards_that_are_not_ready_are_not_the_same(letter: str) -> None:
    held = store(chunks=[1])
    said = answering(held, letter * SHARDS).to(marked(held, 5, *NEURONS[:5]))
    assert isinstance(said, Rows)
    assert said.same == b""
    homes = {LAYOUT.shard_of(*neuron) for neuron in NEURONS[:5]}
    assert {*unpacked(said.moved, SHARDS).tolist()} == homes


def test_a_row_that_is_not_is_not_the_same() -> None:
    held = store(chunks=[1])
    neuron = Neuron(5, 0)
    empty = empty_row(neuron, Name("bee", None))
    question = replace(read(neuron), marks=mark(empty, SALT), salt=SALT)
    assert_told(answering(held).to(question), [], [], held)


WRONG: dict[str, Callable[[Read], Read]] = {
    "more marks than neurons": lambda one: replace(one, marks=one.marks + bytes(8)),
    "half a mark": lambda one: replace(one, marks=one.marks[:-1]),
    "no salt": lambda one: replace(one, salt=b""),
    "a short salt": lambda one: replace(one, salt=SALT[1:]),
    "a salt for nothing": lambda one: replace(one, marks=b""),
    "a row twice": lambda one: replace(
        one, concepts=one.concepts[:8] * 5, features=one.features[:8] * 5
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_marks_are_refused(name: str) -> None:
    held = store(chunks=[1])
    said = answering(held).to(WRONG[name](marked(held, 5, *NEURONS[:5])))
    assert isinstance(said, Refusal)
    assert "marks" in said.reason
    assert not said.is_busy
