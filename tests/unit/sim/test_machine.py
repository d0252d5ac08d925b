"""A machine that runs a real node: it is asked, stands still, dies and begins again."""

import asyncio
import logging
from collections.abc import Awaitable

import pytest

from giaann_p2p.errors import PeerError, StoreError
from giaann_p2p.net.errors import Reason, Refused, TimedOut, Unreachable
from giaann_p2p.sim.compute import ComputePeer
from giaann_p2p.sim.hostile.liar import Liar
from giaann_p2p.sim.hostile.shirker import Shirker
from giaann_p2p.sim.machine import Machine, TraceLog
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.member_messages import AskManifest, AskRevoked, ManifestIs
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import decode, encode


@pytest.fixture
def swarm() -> Swarm:
    """A storage peer, and two machines with compute peers."""
    swarm = Swarm(0, everything=True)
    swarm.add_storage()
    for _ in range(2):
        swarm.add_compute()
    swarm.clock.run_until(5)
    return swarm


def ask(swarm: Swarm, timeout: float = 4.0) -> list[bytes | PeerError]:
    """Let the first machine ask the second for the manifest."""
    one, other = swarm.computes
    answers = list[bytes | PeerError]()
    one.transport.ask(other.peer, encode(AskManifest()), timeout=timeout, told=answers.append)
    return answers


def read(answers: list[bytes | PeerError]) -> list[Message]:
    return [decode(answer) for answer in answers if isinstance(answer, bytes)]


def test_a_node_is_asked_and_answers(swarm: Swarm) -> None:
    answers = ask(swarm)
    assert answers == []
    swarm.clock.run_until(10)
    assert read(answers) == [ManifestIs(swarm.manifest.to_bytes())]


def test_a_node_is_told_of_the_others_by_looking_at_the_board(swarm: Swarm) -> None:
    for one in swarm.computes:
        known = {said.peer for said in one.around.directory.live(one.now)}
        assert known >= {swarm.storages[0].peer, one.peer}


def test_a_machine_that_reaches_nobody_waits_and_tries_again(swarm: Swarm) -> None:
    swarm.add_compute()
    late = swarm.computes[2]
    others = [node.peer for node in swarm.nodes if node is not late]
    swarm.network.cut = {(late.peer, one) for one in others}
    swarm.clock.run_until(30)
    assert not late.node.lookout.whole.is_set()
    assert any("WARNING: the peer directory cannot be" in line for line in swarm.trace.lines)
    swarm.network.cut.clear()
    swarm.clock.run_until(60)
    assert {said.peer for said in late.around.directory.live(late.now)} >= {*others, late.peer}


def test_a_question_that_is_given_up_is_not_answered(swarm: Swarm) -> None:
    one, other = swarm.computes
    answers = list[bytes | PeerError]()
    drop = one.transport.ask(other.peer, encode(AskManifest()), timeout=4.0, told=answers.append)
    drop()
    swarm.clock.run_until(10)
    assert answers == []


@pytest.mark.parametrize(("silent", "error"), [(0.0, Unreachable), (1.0, TimedOut)])
def test_a_dead_machine_does_not_answer(
    swarm: Swarm, silent: float, error: type[PeerError]
) -> None:
    swarm.network.weather.silent = silent
    swarm.computes[1].die()
    answers = ask(swarm)
    swarm.clock.run_until(10)
    assert [type(answer) for answer in answers] == [error]


def answering(one: Machine, how: str) -> None:
    async def late() -> bytes:
        await asyncio.sleep(1)
        raise StoreError("no room")

    def handler(peer: Peer, body: bytes) -> bytes | Awaitable[bytes]:
        if how == "at once":
            raise Refused(Reason.LEAVING, "about to go")
        return late()

    one.transport.serve(handler)


@pytest.mark.parametrize(
    ("how", "reason", "words"),
    [("at once", Reason.LEAVING, "about to go"), ("late", Reason.FAILED, "no room")],
)
def test_what_a_node_refuses_the_caller_is_told(
    swarm: Swarm, how: str, reason: Reason, words: str
) -> None:
    answering(swarm.computes[1], how)
    answers = ask(swarm)
    swarm.clock.run_until(10)
    (error,) = answers
    assert isinstance(error, Refused)
    assert (error.reason, str(error)) == (reason, words)


def test_a_machine_that_stands_still_does_nothing_until_it_goes_on(swarm: Swarm) -> None:
    one, ticks = swarm.computes[0], list[float]()

    async def tick() -> None:
        while True:
            ticks.append(swarm.clock.now)
            await asyncio.sleep(1)

    tasks = list[asyncio.Task[None]]()
    one.loop.do(lambda: tasks.append(one.loop.create_task(tick())))
    swarm.clock.run_until(7.5)
    one.stop()
    swarm.clock.run_until(20)
    assert ticks == [5, 6, 7]
    one.go_on()
    swarm.clock.run_until(21.5)
    assert ticks == [5, 6, 7, 20, 21]


def test_a_timer_that_is_cancelled_while_its_machine_stands_still_does_nothing(
    swarm: Swarm,
) -> None:
    one, rung = swarm.computes[0], list[str]()
    timers = list[asyncio.TimerHandle]()
    one.loop.do(lambda: timers.append(one.loop.call_later(1, rung.append, "late")))
    one.loop.do(lambda: timers.append(one.loop.call_later(2, rung.append, "later")))
    one.stop()
    swarm.clock.run_until(10)
    timers[0].cancel()
    one.go_on()
    swarm.clock.run_until(20)
    assert rung == ["later"]
    assert swarm.promises.faults == []


def test_nothing_is_left_of_a_life(swarm: Swarm) -> None:
    one = swarm.computes[0]
    before = one.loop
    assert asyncio.all_tasks(before)
    one.die()
    with pytest.raises(Unreachable, match="dead"):
        ask(swarm)
    assert not asyncio.all_tasks(before)
    one.restart()
    swarm.clock.run_until(20)
    assert one.loop is not before
    assert swarm.promises.faults == []


def test_the_same_seed_brings_the_same_history() -> None:
    def history() -> list[str]:
        swarm = Swarm(4, everything=True)
        swarm.add_storage()
        swarm.add_compute()
        swarm.clock.run_until(60)
        return [*swarm.trace.lines, str(swarm.network.carried)]

    assert history() == history()


def test_a_node_that_fails_breaks_a_promise(swarm: Swarm, monkeypatch: pytest.MonkeyPatch) -> None:
    one = swarm.computes[0]
    assert isinstance(one, ComputePeer)
    monkeypatch.setattr(one.node, "_tell", lambda: 1 / 0)
    swarm.clock.run_until(7)
    assert swarm.promises.faults == ["compute0 ends: ZeroDivisionError('division by zero')"]


def revoke(swarm: Swarm, *peers: Peer) -> None:
    swarm.revoke(swarm.admission.revoked.next(swarm.founder, set(peers)))


def test_the_founders_list_reaches_every_machine(swarm: Swarm) -> None:
    running, still = swarm.computes
    (dead,) = swarm.storages
    still.stop()
    dead.crash()
    revoke(swarm, Peer(b"s" * 32))
    assert running.gate.admission.revoked.number == 1
    assert still.gate.admission.revoked.number == 0
    still.go_on()
    swarm.clock.run_until(6)
    dead.restart()
    assert [one.gate.admission.revoked.number for one in (still, dead)] == [1, 1]
    assert dead.gate.admission is not still.gate.admission


def test_an_honest_machine_ends_when_it_is_revoked(swarm: Swarm) -> None:
    one, other = swarm.computes
    revoke(swarm, one.peer)
    swarm.clock.run_until(10)
    (fault,) = swarm.promises.faults
    assert fault.startswith("compute0 ends: NotAdmitted(")
    assert not other.admits(one.peer, AskRevoked(0))


def test_a_hostile_machine_goes_on_when_it_is_revoked(swarm: Swarm) -> None:
    hostile = [
        Shirker(swarm, "shirker", 0.0, frozenset()),
        Liar(swarm, "liar", 0.0, frozenset()),
    ]
    swarm.hostiles += hostile
    swarm.clock.run_until(20)
    revoke(swarm, *(one.peer for one in hostile))
    swarm.clock.run_until(60)
    assert [one.gate.admission.revoked.number for one in hostile] == [1, 1]
    assert not any(one._task.done() for one in hostile)
    assert swarm.promises.faults == []
    members = {said.peer for said in swarm.computes[0].around.directory.live(swarm.computes[0].now)}
    assert members.isdisjoint(one.peer for one in hostile)


def test_what_a_node_logs_is_traced() -> None:
    said = list[str]()
    log: logging.Logger = TraceLog(said.append)
    log.debug("not this")
    log.info("%d of %s", 3, "them")
    log.warning("100 %")
    assert said == ["INFO: 3 of them", "WARNING: 100 %"]
