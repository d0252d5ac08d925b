"""The network in memory: each way of failing, alone."""

import random
from collections.abc import Callable

import pytest

from giaann_p2p.errors import PeerError
from giaann_p2p.net.clock import Clock
from giaann_p2p.sim.network import Network
from giaann_p2p.swarm.wire.identity import Peer

A, B = Peer(b"a" * 32), Peer(b"b" * 32)
TIMEOUT = 4.0


class Echo:
    """Answers every question with itself."""

    def __init__(self) -> None:
        self.alive, self.stopped = True, False
        self.got: list[bytes] = []

    def deliver(self, sender: Peer, data: bytes, reply: Callable[[bytes], None]) -> None:
        self.got.append(data)
        reply(data.upper())


class World:
    """Two peers, and what each question came to and when."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.network = Network(self.clock, random.Random(1))
        self.a, self.b = Echo(), Echo()
        self.network.endpoints |= {A: self.a, B: self.b}
        self.answers: list[tuple[float, bytes | None]] = []

    def ask(self, times: int = 1) -> list[bytes | None]:
        """Let A ask B; wait for all answers."""
        self.begin(times)
        self.clock.run_until(self.clock.now + 2 * TIMEOUT)
        return [answer for _, answer in self.answers]

    def begin(self, times: int = 1) -> None:
        for _ in range(times):
            self.network.ask(A, B, b"what", TIMEOUT, self._told)

    def _told(self, answer: bytes | PeerError) -> None:
        self.answers.append((self.clock.now, answer if isinstance(answer, bytes) else None))


@pytest.fixture
def world() -> World:
    return World()


def test_a_question_is_answered_after_a_while(world: World) -> None:
    assert world.ask() == [b"WHAT"]
    assert 0 < world.answers[0][0] < 0.7
    assert world.network.carried == 8


def test_what_is_told_is_not_answered(world: World) -> None:
    world.network.tell(A, B, b"this")
    world.clock.run_until(10)
    assert world.b.got == [b"this"]
    assert world.network.carried == 4


def test_lost_messages_come_to_nothing_in_time(world: World) -> None:
    world.network.weather.lost = 1.0
    assert world.ask() == [None]
    assert world.answers[0][0] == TIMEOUT
    assert world.b.got == []


@pytest.mark.parametrize(("peer", "took"), [(A, 1.2), (B, 1.2), (None, 0.0)])
def test_a_thin_line_carries_one_thing_after_the_other(
    world: World, peer: Peer | None, took: float
) -> None:
    world.network.weather.latency = 0.0
    if peer is not None:
        world.network.thin[peer] = 10.0
    assert world.ask(3) == [b"WHAT"] * 3
    last = world.answers[-1][0]
    assert took <= last <= took + 0.5  # questions and answers have a way each
    world.answers.clear()
    assert world.ask(12)[-1] == (None if peer is not None else b"WHAT")


def test_a_part_of_the_messages_is_lost_in_either_direction(world: World) -> None:
    world.network.weather.lost = 0.3
    answers = world.ask(1000)
    assert len(answers) == 1000
    assert 600 < len(world.b.got) < 800
    assert 400 < len(answers) - answers.count(None) < 580


def test_a_doubled_question_arrives_twice_and_is_answered_once(world: World) -> None:
    world.network.weather.twice = 1.0
    assert world.ask() == [b"WHAT"]
    assert world.b.got == [b"what", b"what"]


def test_messages_overtake_one_another(world: World) -> None:
    for number in range(100):
        world.network.tell(A, B, bytes([number]))
    world.clock.run_until(10)
    assert len(world.b.got) == 100
    assert world.b.got != sorted(world.b.got)


@pytest.mark.parametrize(("cut", "arrives"), [((A, B), False), ((B, A), True)])
def test_a_link_is_cut_in_one_direction(
    world: World, cut: tuple[Peer, Peer], arrives: bool
) -> None:
    world.network.cut.add(cut)
    assert world.ask() == [None]
    assert bool(world.b.got) is arrives
    world.network.cut.clear()
    assert world.ask() == [None, b"WHAT"]


@pytest.mark.parametrize("slow", [A, B])
def test_a_slow_peer_is_slow_in_both_directions(world: World, slow: Peer) -> None:
    world.ask(50)
    usual = sum(when for when, _ in world.answers)
    world = World()
    world.network.slow[slow] = 5.0
    world.ask(50)
    assert sum(when for when, _ in world.answers) == pytest.approx(5 * usual)


def test_an_answer_that_comes_too_late_counts_for_none(world: World) -> None:
    world.network.weather.latency = 10.0
    assert world.ask() == [None]
    world.clock.run_until(1000)
    assert len(world.answers) == 1
    assert world.b.got == [b"what"]


@pytest.mark.parametrize(("silent", "soon"), [(0.0, True), (1.0, False)])
def test_a_dead_peers_machine_refuses_or_is_silent(world: World, silent: float, soon: bool) -> None:
    world.network.weather.silent = silent
    world.b.alive = False
    assert world.ask() == [None]
    assert (world.answers[0][0] < TIMEOUT) is soon
    assert world.b.got == []


def test_nobody_is_there(world: World) -> None:
    del world.network.endpoints[B]
    world.network.weather.silent = 0.0
    assert world.ask() == [None]
    assert world.answers[0][0] < TIMEOUT


def test_a_stopped_peer_answers_when_it_goes_on(world: World) -> None:
    world.b.stopped = True
    world.begin()
    world.clock.run_until(2)
    assert (world.b.got, world.answers) == ([], [])
    world.b.stopped = False
    world.network.go_on(B)
    world.clock.run_until(10)
    assert world.b.got == [b"what"]
    assert [answer for _, answer in world.answers] == [b"WHAT"]
    world.network.go_on(B)  # nothing is kept twice
    world.clock.run_until(20)
    assert world.b.got == [b"what"]


def test_a_stopped_peer_that_goes_on_too_late_has_been_asked_all_the_same(world: World) -> None:
    world.b.stopped = True
    assert world.ask() == [None]
    world.b.stopped = False
    world.network.go_on(B)
    world.clock.run_until(50)
    assert world.b.got == [b"what"]
    assert len(world.answers) == 1
