"""Real hosts in one loop, which leave nothing behind."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.streams import HiveStreams
from giaann_p2p.net.limits import TransportLimits
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.net.transport import Peer

LOOPBACK = ("/ip4/127.0.0.1/tcp/0",)
SWIFT = TransportLimits(drain_within=0.2, linger=0.2, dial_within=30.0)
"""Limits for tests: connections end soon, and a busy machine has time to make one."""
_PATIENCE = 3.0


class Place:
    """Some hosts, and what they tell of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts: list[Host] = []
        self.deaths: list[str] = []
        self.complaints: list[dict[str, Any]] = []
        self.book: dict[Peer, tuple[str, ...]] = {}
        self.pids: set[int] = set()

    def config(self, **changes: Any) -> HostConfig:  # noqa: ANN401
        patient = {"start_within": 120.0, "answer_within": 120.0}  # on a busy machine
        settings = {"listen": LOOPBACK, "folder": self.folder, **patient, **changes}
        return HostConfig(**settings)

    async def host(self, key: str | None = None, **changes: Any) -> Host:  # noqa: ANN401
        key_file = self.folder / (key or f"{len(self.hosts)}.key")
        host = await Host.start(key_file, self.config(**changes), self.deaths.append)
        self.hosts.append(host)
        self.book[host.me] = host.addresses
        self.note(host)
        return host

    def note(self, host: Host) -> int:
        """Remember the process that a host has now: it must have gone at the end."""
        pid = host.pid
        assert pid is not None
        self.pids.add(pid)
        return pid

    def streams(self, host: Host) -> HiveStreams:
        return HiveStreams(host, lambda peer: self.book.get(peer, ()))

    def transport(self, host: Host, limits: TransportLimits = SWIFT) -> StreamTransport:
        return StreamTransport(self.streams(host), limits)


def port_of(host: Host) -> int:
    return int(host.addresses[0].split("/")[4])


Story = Callable[[Place], Awaitable[None]]


def hosts(
    story: Story, loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
) -> None:
    """Tell a story of hosts; see that no process, socket, task or file is left of them."""

    async def tell(place: Place) -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: place.complaints.append(context)
        )
        try:
            async with asyncio.timeout(400):  # well above what any step of a story may take
                await story(place)
        finally:
            await asyncio.gather(*[host.close() for host in place.hosts])
            await nothing_runs()

    with tempfile.TemporaryDirectory(prefix="g") as name:
        place = Place(Path(name))
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(tell(place))
        assert place.complaints == []
        assert [path.name for path in place.folder.iterdir() if path.suffix != ".key"] == []
        assert not any(map(runs, place.pids))


async def nothing_runs() -> None:
    """Wait for what is ending; no task but this one may stay."""
    me = asyncio.current_task()
    try:
        await until(lambda: asyncio.all_tasks() == {me}, _PATIENCE)
    except TimeoutError:
        pytest.fail(f"these run on: {asyncio.all_tasks() - {me}}")


async def until(holds: Callable[[], bool], within: float = 120.0) -> None:
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110  (of other processes)
            await asyncio.sleep(0.01)


def state_of(pid: int) -> str:
    """Return a process's state, as ps prints it; nothing if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def runs(pid: int) -> bool:
    """Tell whether a process runs, and is not only waited for."""
    return state_of(pid) not in ("", "Z")


async def stop(pid: int) -> None:
    """Stop a process, as if its machine had frozen."""
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: state_of(pid) == "T")


async def echo(peer: Peer, body: bytes) -> bytes:
    return body


def random_bytes(size: int) -> bytes:
    return os.urandom(size)
