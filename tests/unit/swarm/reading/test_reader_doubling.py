"""Reads go on while the number of shards doubles: no row is lost between two halves of a shard."""

import numpy as np

from giaann_p2p.store.codec import plain
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.reading.row_calls import RowAnswer, RowCalls
from giaann_p2p.swarm.reading.row_vote import Verify
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import (
    JOB,
    LAYOUT,
    LESSONS,
    LIMITS,
    NOW,
    SHARDS,
    SPEC,
    A,
    Around,
    B,
    C,
    sent,
    shards,
)
from tests.unit.swarm.reading.helpers_row_vote import ALL, SALT, Mouth, World, adds, honest, in_turn
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


def test_an_answer_counts_shards_as_its_question_did() -> None:
    around, told = Around(A), list[RowAnswer]()
    calls = RowCalls(LIMITS, around, 2.0)
    call = calls.ask(A, NEURONS, lambda answer, now: told.append(answer), NOW)
    around.rules = Rules(16 * SHARDS, founding_shards=SHARDS)
    calls.answered(call.number, Rows(plain.MAGIC, packed(shards(HOME), SHARDS)), NOW)
    assert told[0].moved == {*HALVES}


def doubled(world: World) -> None:
    world.around.rules = Rules(DOUBLED.shards, founding_shards=SHARDS)
    world.around.ready_at = {shard: list(world.mouths) for shard in range(DOUBLED.shards)}
    world.around.changes += 1


LIES_ONCE: Mouth = in_turn((0, adds), (0.5, honest))


def test_a_dispute_goes_on_for_each_half_of_its_shard() -> None:
    world = World({A: honest, B: honest, C: LIES_ONCE}, ALL)
    world.read(HALVES)
    assert len(world.reader.disputes) == 1
    doubled(world)
    world.asked.clear()
    world.run(20)
    asked = [{DOUBLED.shard_of(*neuron) for neuron in neurons} for _, neurons in world.asked]
    assert {*map(len, asked)} == {1}
    (lie,) = world.lied  # then it is not asked in the other dispute
    assert (lie.peer, DOUBLED.shard_of(*lie.neuron)) == (C, lie.shard)
    assert world.reader.settled


def test_an_answer_to_a_dispute_from_before_the_doubling_settles_nothing() -> None:
    world = World({A: honest, B: honest, C: LIES_ONCE}, ALL, {A: 0.01, B: 0.01, C: 0.6})
    world.read(HALVES)
    world.run(1.5)  # a round is under way
    doubled(world)
    world.asked.clear()
    world.run(20)
    assert [lie.peer for lie in world.lied] == [C]
    asked = {len({DOUBLED.shard_of(*one) for one in neurons}) for _, neurons in world.asked}
    assert asked == {1}


def test_a_comparison_that_the_doubling_overtakes_opens_a_dispute_on_each_half() -> None:
    world = World({A: honest, B: honest, C: adds}, Verify(0.9999, SALT))
    while not any(peer == C for peer, _ in world.asked):
        world.read(HALVES)
    assert len(world.reader.disputes) == 0
    doubled(world)
    world.run(0.5)
    assert world.reader.disputes.opened == 2
