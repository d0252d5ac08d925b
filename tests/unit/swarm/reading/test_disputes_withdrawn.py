"""Disputes while the founder withdraws chunks: rows shrink, first at one owner, then at another."""

import pytest

from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.reading.disputes import RETRACTING
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.revoked import Revoked
from tests.helpers_swarm import JOB, A, B, C
from tests.unit.swarm.reading.helpers_row_vote import (
    ALL,
    CHUNKS,
    NEURONS,
    Mouth,
    World,
    adds,
    bends,
    hides,
    honest,
    in_turn,
    knows,
)

FOUNDER = Identity.from_seed(bytes(32))
SWARM = Manifest.founded(FOUNDER, "town", layout=Layout(shards=16))
LIST = Revoked(SWARM.swarm_id).next(FOUNDER, set(), withdrawn={(JOB, CHUNKS[-1]): bytes(16)})
FEWER = knows(*CHUNKS[:-1])
"""The peers that have withdrawn a chunk."""
ONCE = 10.0
"""When chunks are withdrawn, in seconds of a test."""

TOOK = {A: 0.001, B: 0.05, C: 0.2}
"""Seconds that each peer takes to answer: A is asked always."""
WITHDRAW = in_turn((0, honest), (ONCE, FEWER))


def world(mouth: Mouth, others: Mouth = WITHDRAW) -> World:
    """Return a world in which B and C withdraw a chunk, and a reader that has read before that."""
    one = World({A: mouth, B: others, C: others}, ALL, TOOK)
    one.around.admission = Admission(SWARM)
    assert one.read(NEURONS) is not None
    one.run(ONCE)
    return one


def withdraw(one: World) -> None:
    assert one.around.admission is not None
    assert one.around.admission.learn(LIST.to_bytes())


def late(seconds: float) -> Mouth:
    """Return an honest peer that withdraws a chunk so many seconds after the others."""
    return in_turn((0, honest), (ONCE + seconds, FEWER))


def test_who_withdraws_a_little_later_than_others_is_not_blamed() -> None:
    one = world(late(5))
    withdraw(one)
    assert one.read(NEURONS) is not None
    one.run(100)
    assert one.reader.disputes.opened > 0
    assert one.lied == []
    assert one.reader.disputes.undecided == 0


def test_also_if_the_reader_gets_the_list_a_little_later_than_the_owners() -> None:
    one = world(late(5))
    one.read(NEURONS)
    one.run(8)
    withdraw(one)
    one.run(100)
    assert one.lied == []


def test_without_a_new_list_it_is_blamed() -> None:
    one = world(late(5))
    one.read(NEURONS)
    one.run(100)
    assert {said.peer for said in one.lied} == {A}


def test_a_list_that_was_there_before_the_first_read_excuses_nothing() -> None:
    one = World({A: in_turn((0, honest), (5, FEWER)), B: FEWER, C: FEWER}, ALL, TOOK)
    one.around.admission = Admission(SWARM)
    withdraw(one)
    one.read(NEURONS)
    one.run(100)
    assert {said.peer for said in one.lied} == {A}


def test_a_list_excuses_only_for_a_while() -> None:
    begins = ONCE + RETRACTING
    one = world(in_turn((0, FEWER), (begins, honest), (begins + 5, FEWER)), FEWER)
    withdraw(one)
    one.read(NEURONS)
    one.run(RETRACTING)
    assert one.lied == []
    one.read(NEURONS)
    one.run(100)
    assert {said.peer for said in one.lied} == {A}


@pytest.mark.parametrize("seconds", [5, 20, 40])
def test_who_withdraws_and_learns_at_the_same_time_is_not_blamed(seconds: float) -> None:
    more, left = knows(*CHUNKS, 7), knows(*CHUNKS[:-1], 7)
    others = in_turn((0, honest), (ONCE, FEWER), (ONCE + 14, left))
    one = world(in_turn((0, honest), (ONCE + 5, more), (ONCE + seconds, left)), others)
    withdraw(one)
    one.read(NEURONS)
    one.run(100)
    assert one.reader.disputes.opened > 0
    assert one.lied == []


@pytest.mark.parametrize("liar", [adds, hides, bends, honest])
def test_who_goes_on_telling_something_else_is_blamed_all_the_same(liar: Mouth) -> None:
    one = world(in_turn((0, honest), (ONCE, liar)))
    withdraw(one)
    one.read(NEURONS)
    one.run(70)
    assert {said.peer for said in one.lied} == {A}


def test_an_owner_that_falls_silent_is_not_excused() -> None:
    one = world(in_turn((0, honest), (ONCE + 0.5, lambda neurons, now: None)))
    withdraw(one)
    one.read(NEURONS)
    one.run(100)
    assert {said.peer for said in one.lied} == {A}
