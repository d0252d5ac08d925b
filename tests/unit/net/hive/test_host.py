"""Real p2pd's, started, killed, stopped, and ended."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.control import Control
from giaann_p2p.net.hive.daemon import DaemonError
from giaann_p2p.net.hive.daemon_limits import WatchLimits
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.life import Life
from giaann_p2p.net.hive.peer_id import libp2p_name
from giaann_p2p.swarm.wire.identity import Identity
from tests.unit.net.hive.helpers import LOOPBACK, Place, hosts, runs, stop, until

GHOST = Identity.from_seed(bytes(32)).peer


def environment_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_text().split("\0")


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_it_is_who_its_key_says_and_leaves_nothing(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def story(place: Place) -> None:
        host = await place.host()
        (address,) = host.addresses
        assert address.startswith("/ip4/127.0.0.1/tcp/")
        assert address.endswith(f"/p2p/{libp2p_name(host.me)}")
        assert await host.control.me() == host.me
        assert "p2pd" in repr(host)
        assert "GOGC=50" in environment_of(place.note(host))
        assert os.getpgid(place.note(host)) != os.getpgrp()  # which Ctrl-C interrupts

    hosts(story, loop)


def test_hosts_connect_by_their_addresses() -> None:
    async def story(place: Place) -> None:
        first, second = await place.host(), await place.host()
        ghost = f"/ip4/127.0.0.1/tcp/9/p2p/{libp2p_name(GHOST)}"
        found = await first.connect([*second.addresses, ghost, *first.addresses])
        assert found == [second.me]
        assert await first.control.peers() == [second.me]
        with pytest.raises(UsageError, match="names no peer"):
            await first.connect(["/ip4/127.0.0.1/tcp/9"])
        odd = f"/ip4/127.0.0.1/tcp/99999999/p2p/{libp2p_name(GHOST)}"
        assert await first.connect([odd]) == []

    hosts(story)


def test_p2pd_is_started_again_with_the_same_key_and_port() -> None:
    async def story(place: Place) -> None:
        lives: list[int] = []
        host = await place.host()

        async def hook(life: object) -> None:
            lives.append(place.note(host) if host.pid else 0)
            assert host.is_up == (len(lives) == 1)  # not again before all is set up

        await host.each_life(hook)
        me, addresses = host.me, host.addresses
        for number in (1, 2):
            os.kill(place.note(host), signal.SIGKILL)
            await until(lambda number=number: len(lives) == 1 + number)  # type: ignore[misc]
            assert await host.control.me() == me
            assert host.addresses == addresses
        await until(lambda: host.is_up)
        assert host.deaths == 2
        assert len(set(lives)) == 3
        assert [why.split(":")[0] for why in place.deaths] == ["p2pd ended with exit code -9"] * 2
        host.forget(hook)

    hosts(story)


def test_a_machine_that_moves_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere, told = ("/ip4/10.77.0.99/tcp/4100/p2p/x",), [("/ip4/10.77.0.98/tcp/4100/p2p/x",)]

    async def addresses(_control: Control, _within: float = 5.0) -> tuple[str, ...]:
        return told[0] if len(told) == 1 else told.pop(0)

    async def story(place: Place) -> None:
        host = await place.host(check_every=0.01)
        first = host.addresses
        monkeypatch.setattr(Control, "addresses", addresses)
        await until(lambda: host.addresses == told[0] != first)
        told[:] = [told[0], elsewhere, (), ()]  # for a moment it is nowhere
        await until(lambda: host.addresses == elsewhere and len(told) == 1)
        assert host.addresses == elsewhere
        os.kill(place.note(host), signal.SIGKILL)
        monkeypatch.undo()
        await until(lambda: host.deaths == 1)
        await until(lambda: host.addresses == first)

    hosts(story)


def test_an_answer_of_p2pd_that_cannot_be_read_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def addresses(_control: Control, _within: float = 5.0) -> tuple[str, ...]:
        monkeypatch.undo()
        raise ValueError("no address")

    async def story(place: Place) -> None:
        host = await place.host(check_every=0.01)
        monkeypatch.setattr(Control, "addresses", addresses)
        await until(lambda: host.deaths == 1 and host.is_up)
        place.note(host)
        assert place.deaths == ["p2pd's answer cannot be read: ValueError('no address')"]

    hosts(story)


def test_it_is_tried_again_whatever_keeps_p2pd_from_starting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def start(*what: object) -> Life:
        monkeypatch.undo()
        raise ValueError("no life")

    async def story(place: Place) -> None:
        host = await place.host()
        monkeypatch.setattr(Life, "start", start)
        os.kill(place.note(host), signal.SIGKILL)
        await until(lambda: host.deaths == 1 and host.is_up)
        place.note(host)

    hosts(story)


@pytest.mark.parametrize("fault", [TimeoutError, ValueError])
def test_a_life_that_cannot_be_set_up_is_ended_for_a_better_one(fault: type[Exception]) -> None:
    async def story(place: Place) -> None:
        host = await place.host()
        tries: list[int] = []

        async def hook(life: object) -> None:
            tries.append(place.note(host))
            if len(tries) == 1:
                raise fault

        host.next_lives(hook)
        os.kill(place.note(host), signal.SIGKILL)
        await until(lambda: len(tries) == 1)
        assert not host.is_up
        await until(lambda: len(tries) == 2 and host.is_up)
        assert host.pid == tries[1] != tries[0]
        assert await host.control.me() == host.me
        assert host.deaths == 2

    hosts(story)


def test_while_p2pd_is_gone_all_fails_at_once() -> None:
    async def story(place: Place) -> None:
        host = await place.host(again_after=5.0)
        os.kill(place.note(host), signal.SIGKILL)
        await until(lambda: host.deaths == 1)
        assert host.pid is None
        assert not host.is_up
        with pytest.raises(ConnectionError, match="is being restarted"):
            await host.open_stream(GHOST, [], 5)
        with pytest.raises(ConnectionError, match="is being restarted"):
            await host.connect([])

    hosts(story)


def test_a_p2pd_that_was_stopped_is_replaced() -> None:
    async def story(place: Place) -> None:
        host = await place.host(check_every=0.1, answer_within=0.3)
        before = place.note(host)
        await stop(before)
        await until(lambda: host.deaths == 1 and host.pid is not None)
        assert place.note(host) != before
        assert place.deaths == ["p2pd did not answer for 0.3 s"]

    hosts(story)


def test_a_host_closes_while_its_p2pd_is_stopped() -> None:
    async def story(place: Place) -> None:
        host = await place.host()
        await stop(place.note(host))

    hosts(story)


@pytest.mark.parametrize("own", [{}, {"GOGC": "77", "GOMEMLIMIT": "99MiB"}])
def test_how_a_user_has_set_gos_memory_holds(
    own: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOGC", "GOMEMLIMIT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)

    async def story(place: Place) -> None:
        host = await place.host(gogc=123, watch=WatchLimits(memory=148_500_000))
        environment = environment_of(place.note(host))
        known = dict(line.split("=", 1) for line in environment if line.startswith("GO"))
        ours = {"GOGC": "123", "GOMEMLIMIT": "99000000", "GOLOG_LOG_LEVEL": "error"}
        assert known == ours | own

    hosts(story)


def test_a_port_that_is_taken() -> None:
    async def story(place: Place) -> None:
        first = await place.host()
        with pytest.raises(DaemonError, match="another process listens at /ip4/127"):
            await Host.start(place.folder / "9.key", place.config(listen=first.config.listen))
        with pytest.raises(DaemonError, match=r"p2pd ended at once: .*this machine"):
            await Host.start(place.folder / "9.key", place.config(listen=("/ip4/192.0.2.1/tcp/0",)))

    hosts(story)


def test_a_start_that_is_given_up_leaves_nothing() -> None:
    async def story(place: Place) -> None:
        for pause in (0, 0.01, 0.05, 0.1, 0.2):
            task = asyncio.create_task(Host.start(place.folder / "9.key", place.config()))
            await asyncio.sleep(pause)
            task.cancel()
            ended = await asyncio.gather(task, return_exceptions=True)
            if isinstance(ended[0], Host):
                await ended[0].close()

    hosts(story)


@pytest.mark.slow
def test_p2pd_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = f"""
import asyncio, os, pathlib, warnings
warnings.simplefilter("ignore")
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.config import HostConfig
async def main():
    folder = pathlib.Path({str(tmp_path)!r})
    host = await Host.start(folder / "a.key", HostConfig(listen={LOOPBACK!r}, folder=folder))
    print(host.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert runs(pid)
        process.kill()
    for _ in range(500):
        if not runs(pid):
            break
        time.sleep(0.01)
    assert not runs(pid)

    async def story(place: Place) -> None:
        await place.host(folder=tmp_path)
        assert len(os.listdir(tmp_path)) == 2  # noqa: PTH208  (what was left is swept)

    hosts(story)
    assert [path.name for path in tmp_path.iterdir()] == ["a.key"]


def test_p2pd_is_restarted_with_relays_before_the_first_address_of_one_is_dialled() -> None:
    async def story(place: Place) -> None:
        one, other = await place.host(), await place.host()
        relay = await place.host(relay=True)
        before = one.pid
        assert await one.connect(other.addresses) == [other.me]
        assert (one.pid, one.deaths, one.config.uses_relays) == (before, 0, False)
        way = f"{relay.addresses[0]}/p2p-circuit/p2p/{libp2p_name(other.me)}"
        await asyncio.gather(one.connect([way]), one.connect([way]))
        assert (one.deaths, one.config.uses_relays) == (1, True)
        assert place.note(one) != before
        with pytest.raises(OSError, match=r"."):  # the other has no place at the relay
            await one.open_stream(other.me, [way.rpartition("/p2p/")[0]], 5)
        assert await one.connect(other.addresses) == [other.me]
        assert one.deaths == 1

    hosts(story)


@pytest.mark.parametrize("relay", [False, True])
def test_dials_come_from_ports_of_their_own_unless_holes_in_nats_are_wanted(relay: bool) -> None:
    """Else two that dial each other at once get one connection with two dialling ends."""

    async def story(place: Place) -> None:
        one, other = await place.host(auto_relay=relay), await place.host()
        ways = [address.partition("/p2p/")[0] for address in other.addresses]
        await one.control.connect(other.me, ways, 5)
        mine, theirs = (int(host.config.listen[0].rpartition("/")[2]) for host in (one, other))
        assert (mine in dialled_from(theirs)) == relay

    hosts(story)


def dialled_from(listening: int) -> set[int]:
    """Return the ports at the other ends of a port's connections, of this machine."""
    ports = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        here, there, state = line.split()[1:4]
        if state == "01" and int(here.rpartition(":")[2], 16) == listening:
            ports.add(int(there.rpartition(":")[2], 16))
    return ports
