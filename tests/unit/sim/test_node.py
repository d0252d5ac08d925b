"""A process of the simulation: what it was about to do ends with its life, or waits."""

import pytest

from giaann_p2p.sim.node import EPOCH, Node
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Offer, Refusal, encode

A, B = Peer(b"a" * 32), Peer(b"b" * 32)


@pytest.fixture
def swarm() -> Swarm:
    return Swarm(0, everything=True)


def node(swarm: Swarm, peer: Peer = A, skew: float = 0.0) -> Node:
    around = swarm.view_of(peer)
    return Node("somebody", peer, swarm.clock, swarm.network, swarm.trace, around, skew)


def test_its_clock_may_be_wrong(swarm: Swarm) -> None:
    one = node(swarm, skew=-100.0)
    swarm.clock.run_until(5)
    assert one.now == EPOCH - 95


def test_what_it_was_about_to_do_ends_with_its_life(swarm: Swarm) -> None:
    one, done = node(swarm), list[str]()
    one.later(1, lambda: done.append("in time"))
    one.later(3, lambda: done.append("too late"))
    swarm.clock.run_until(2)
    one.die()
    one.alive = True  # another life
    one.later(2, lambda: done.append("later"))
    swarm.clock.run_until(10)
    assert done == ["in time", "later"]


def test_what_it_was_about_to_do_waits_while_it_stands_still(swarm: Swarm) -> None:
    one, done = node(swarm), list[float]()
    one.later(1, lambda: done.append(swarm.clock.now))
    one.stop()
    swarm.clock.run_until(5)
    assert done == []
    one.go_on()
    swarm.clock.run_until(6)
    assert done == [5]


def test_what_waited_is_gone_if_it_dies_before_it_goes_on(swarm: Swarm) -> None:
    one, done = node(swarm), list[float]()
    one.later(1, lambda: done.append(swarm.clock.now))
    one.stop()
    swarm.clock.run_until(5)
    one.die()
    one.alive = True
    one.go_on()
    swarm.clock.run_until(10)
    assert done == []


def test_what_it_was_asked_while_it_stood_still_is_gone_with_its_life(swarm: Swarm) -> None:
    asked = list[bytes]()

    class Other(Node):
        def deliver(self, sender: Peer, data: bytes, reply: object) -> None:
            asked.append(data)

    other = Other("other", B, swarm.clock, swarm.network, swarm.trace, swarm.view_of(B), 0.0)
    other.stop()
    node(swarm).ask(B, Offer(3), 4.0, lambda answer: None)
    swarm.clock.run_until(2)
    other.die()
    other.alive = True
    other.go_on()
    swarm.clock.run_until(10)
    assert asked == []


@pytest.mark.parametrize(
    ("data", "read"), [(b"no message at all", None), (b"", None), (None, Refusal("why"))]
)
def test_an_answer_that_cannot_be_read_is_none(
    swarm: Swarm, data: bytes | None, read: Message | None
) -> None:
    class Other(Node):
        def deliver(self, sender: Peer, question: bytes, reply: object) -> None:
            assert callable(reply)
            reply(encode(Refusal("why")) if data is None else data)

    one = node(swarm)
    Other("other", B, swarm.clock, swarm.network, swarm.trace, swarm.view_of(B), 0.0)
    answers = list[Message | None]()
    one.ask(B, Offer(3), 4.0, answers.append)
    swarm.clock.run_until(10)
    assert answers == [read]


def test_an_answer_to_an_earlier_life_is_not_told(swarm: Swarm) -> None:
    one, answers = node(swarm), list[Message | None]()
    one.ask(B, Offer(3), 4.0, answers.append)
    one.die()
    one.alive = True
    swarm.clock.run_until(10)
    assert answers == []
