"""Reads go on while the number of shards doubles: no row is lost between two halves of a shard."""

import numpy as np

from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.messages import Read
from giaann_p2p.swarm.wire.replica import ReplicaState
from tests.helpers_swarm import JOB, LAYOUT, LESSONS, NOW, SHARDS, SPEC, A, B, C, sent
from tests.unit.swarm.reading.test_reader import CHUNKS, HOME, NEURONS, Reading, assert_rows

DOUBLED = Layout(shards=2 * SHARDS)
HALVES = [neuron for neuron in NEURONS if LAYOUT.shard_of(*neuron) == HOME]
"""The neurons of one shard, of which some are in either half."""


def doubled_store() -> Store:
    every: Shards = np.arange(DOUBLED.shards, dtype=np.uint16)
    store = Store.in_memory(SPEC, DOUBLED)
    store.hold(every.tolist())
    store.apply([Update(JOB, chunk, every, LESSONS.delta(chunk)) for chunk in CHUNKS])
    return store


STORE = doubled_store()


def half(upper: bool) -> Answers:
    """Return a peer that serves the lower or the upper half of each shard."""
    ready, absent = ReplicaState.READY, ReplicaState.ABSENT
    return Answers(STORE, lambda shard: ready if (shard >= SHARDS) is upper else absent)


def double(one: Reading, *peers: list[Peer]) -> None:
    """Let the reader know an edition by which peers serve the lower and the upper halves."""
    one.around.rules = Rules(DOUBLED.shards, founding_shards=SHARDS)
    one.around.ready_at = {n: list(peers[n // SHARDS]) for n in range(DOUBLED.shards)}
    one.around.changes += 1


def test_there_are_rows_in_both_halves() -> None:
    assert len({DOUBLED.shard_of(*neuron) for neuron in HALVES}) == 2


def test_a_question_that_is_open_is_divided_by_the_new_shards() -> None:
    one = Reading(C)
    one.read(NEURONS)
    double(one, [A], [B])
    one.do(one.reader.tick(NOW + 0.1))
    assert one.asked == [C, A, B]
    for at, upper in ((1, False), (1, True)):
        message = sent(one.calls[at].message)
        assert isinstance(message, Read)
        one.answer(sent(half(upper).to(message)), NOW + 0.2, at)
    assert_rows(one.rows, NEURONS)
    one.answer(None, NOW + 0.3)  # whoever was asked before
    assert len(one.reader) == 0


def test_who_serves_one_half_does_not_answer_for_the_other() -> None:
    """Its answer comes after the edition, to a question from before it."""
    one = Reading(A)
    one.read(HALVES)
    double(one, [A], [B])
    one.answer(sent(half(upper=False).to(sent(one.calls[0].message))), NOW + 0.1)
    assert one.told == []
    assert one.asked == [A, B]
    for upper in (False, True):
        one.answer(sent(half(upper).to(sent(one.calls[0].message))), NOW + 0.2)
    assert_rows(one.rows, HALVES)


def test_what_was_read_before_is_not_read_again() -> None:
    one = Reading()
    one.around.ready_at = {n: [A] if n == HOME else [B] for n in range(SHARDS)}
    one.read(NEURONS)
    assert sorted(one.asked) == [A, B]
    one.serve(at=one.asked.index(A))
    double(one, [C], [C])
    one.do(one.reader.tick(NOW + 0.1))
    assert one.asked == [B, C]
    message = sent(one.calls[1].message)
    assert isinstance(message, Read)
    concepts, features = (np.frombuffer(one, "<u8") for one in (message.concepts, message.features))
    assert HOME not in LAYOUT.shards_of(concepts, features).tolist()
    one.serve(NOW + 0.2, at=1)
    assert_rows(one.rows, NEURONS)
