"""A simulated storage peer: its disk takes time, and it dies within a write."""

import asyncio
from pathlib import Path

import pytest

from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm


@pytest.fixture
def swarm() -> Swarm:
    """A swarm with one storage peer, which has shards by now."""
    swarm = Swarm(0, everything=True)
    swarm.add_storage()
    swarm.clock.run_until(20)
    return swarm


def machine(swarm: Swarm) -> Storage:
    (one,) = swarm.storages
    assert isinstance(one, Storage)
    return one


def test_a_write_takes_its_disks_time_and_other_work_none(swarm: Swarm) -> None:
    one, done = machine(swarm), list[float]()

    def work() -> None:
        done.append(swarm.clock.now)

    one.disk_delay = 10.0
    one.loop.run_in_executor(one.node.disk, work)
    one.loop.run_in_executor(None, work)
    swarm.clock.run_until(60)
    assert done[0] == 20
    assert 25 <= done[1] <= 35
    assert len(done) == 2


def test_the_error_of_a_write_reaches_the_one_who_waits_for_it(swarm: Swarm) -> None:
    one = machine(swarm)
    future = one.loop.run_in_executor(one.node.disk, Path("/none/such").read_bytes)
    assert not future.done()
    swarm.clock.run_until(21)
    assert isinstance(future.exception(), FileNotFoundError)


def test_a_crash_in_the_middle_of_a_write_does_it_and_tells_nobody(swarm: Swarm) -> None:
    one, done, told = machine(swarm), list[bool](), list[str]()

    async def write() -> None:
        await one.loop.run_in_executor(one.node.disk, done.append, True)
        told.append("it is written")

    one.disk_delay = 10.0
    tasks = list[asyncio.Task[None]]()
    one.loop.do(lambda: tasks.append(one.loop.create_task(write())))
    one.crash(in_the_middle=True)
    assert (done, told) == ([True], [])
    assert tasks[0].cancelled()
    swarm.clock.run_until(60)
    assert (done, told) == ([True], [])
    assert swarm.promises.faults == []


def test_a_write_that_is_not_done_at_a_crash_never_is(swarm: Swarm) -> None:
    one, done = machine(swarm), list[bool]()
    one.disk_delay = 10.0
    one.loop.run_in_executor(one.node.disk, done.append, True)
    one.crash()
    one.restart()
    swarm.clock.run_until(60)
    assert done == []
    assert one.core.replicas.held.tolist() == one.store.shards.tolist()
    assert len(one.store.shards) == swarm.promises.shards


def test_a_peer_that_was_told_to_leave_has_left_in_the_end(swarm: Swarm) -> None:
    swarm.add_storage()
    swarm.clock.run_until(60)
    one, other = swarm.storages
    one.leave()
    swarm.clock.run_until(200)
    assert (one.left, one.alive, one.keeps) == (True, False, False)
    assert len(other.store.shards) == swarm.promises.shards
    assert swarm.problems() == []
