"""A peer whose p2pd is flooded, a member that calls it meanwhile, and what both see."""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from giaann_p2p.errors import PeerError
from giaann_p2p.net.hive import daemon
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.daemon_limits import Figures, WatchLimits
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.streams import HiveStreams
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.net.transport import Peer

HERE = "127.0.0.1"
LISTEN = (f"/ip4/{HERE}/tcp/0",)
_EVERY, _ASKED, _PATIENCE = 0.05, 1000, 5.0
_SETTLING = 35.0
"""Seconds after a flood: an excess that lasts for 30 s has p2pd started again."""
_ENDLESS = 1 << 50
UNWATCHED = WatchLimits(memory=_ENDLESS, descriptors=_ENDLESS, busy=float(_ENDLESS))
_MOST = 4_000_000_000
"""Bytes at which a flood of a p2pd without defence is ended."""


class Outcome(msgspec.Struct):
    """What a flood cost."""

    flood: str
    before: float = 0.0
    """MB of p2pd's memory."""
    peak: float = 0.0
    after: float = 0.0
    fds: int = 0
    cores: float = 0.0
    """Which p2pd kept busy."""
    waits: list[float] = msgspec.field(default_factory=list)
    """Seconds of each call of the member, also of those that failed."""
    failed: int = 0
    disconnected: int = 0
    restarts: int = 0

    def line(self) -> str:
        """Return a row of a table."""
        waits = sorted(self.waits) or [0.0]
        p50, p99 = (1000 * waits[int(len(waits) * part)] for part in (0.5, 0.99))
        return (
            f"| {self.flood} | {self.before:.0f} | {self.peak:.0f} | {self.after:.0f} | {self.fds} "
            f"| {self.cores:.2f} | {len(waits)}, {self.failed} | {p50:.0f}, {p99:.0f} "
            f"| {self.disconnected} | {self.restarts} |"
        )


HEAD = (
    "| flood | MB before | peak | after | files | cores | calls, failed | ms, p50, p99 "
    "| disconnected | restarts |\n|---|---|---|---|---|---|---|---|---|---|"
)


async def flooded(flood: str, seconds: float, *, defended: bool) -> Outcome:
    """Flood a peer for so long; return what that cost."""
    outcome = Outcome(flood)
    with tempfile.TemporaryDirectory(prefix="flood") as name:
        folder = Path(name)
        for one in ("target", "member"):
            (folder / one).mkdir()
        with _as_before(not defended):
            watch = WatchLimits() if defended else UNWATCHED
            host = await _host(folder / "target", watch=watch, grace=10.0 if defended else 120.0)
        member = await _host(folder / "member")
        async with _answered(host, member, outcome), _attacker(flood, port_of(host)):
            await _watched(host, seconds, outcome)
        await asyncio.sleep(_SETTLING if defended else 1.0)
        outcome.after = _mb(host.figures)
        outcome.disconnected, outcome.restarts = host.disconnected, host.deaths
        await asyncio.gather(host.close(), member.close())
    return outcome


def port_of(host: Host) -> int:
    """Return where a host listens."""
    return int(host.addresses[0].split("/")[4])


async def _host(folder: Path, **changes: Any) -> Host:  # noqa: ANN401
    # autonat and hole punching are off on loopback, unless asked for
    return await Host.start(
        folder / "peer.key", HostConfig(listen=LISTEN, folder=folder, nat=True, **changes)
    )


@asynccontextmanager
async def _answered(host: Host, member: Host, outcome: Outcome) -> AsyncIterator[None]:
    """Have a member call the host, all the time."""
    where = {host.me: host.addresses, member.me: member.addresses}
    ours, theirs = (
        StreamTransport(HiveStreams(one, lambda peer: where.get(peer, ())))
        for one in (host, member)
    )
    host.know(ours.serves)

    async def echo(_peer: Peer, body: bytes) -> bytes:
        return body

    ours.serve(echo)
    await theirs.call(host.me, b"", timeout=_PATIENCE)
    calling = asyncio.create_task(_calling(theirs, host.me, outcome))
    try:
        yield
    finally:
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await asyncio.gather(ours.close(), theirs.close())


async def _calling(transport: StreamTransport, peer: Peer, outcome: Outcome) -> None:
    while True:
        since = time.monotonic()
        try:
            await transport.call(peer, bytes(_ASKED), timeout=_PATIENCE)
        except PeerError:
            outcome.failed += 1
        outcome.waits.append(time.monotonic() - since)
        await asyncio.sleep(_EVERY)


@asynccontextmanager
async def _attacker(flood: str, port: int) -> AsyncIterator[None]:
    module = "tests.benchmarks.p2pd_flood.attacker"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, flood, HERE, str(port), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _watched(host: Host, seconds: float, outcome: Outcome) -> None:
    """Note what p2pd takes."""
    outcome.before = _mb(host.figures)
    last, used, end = host.figures, 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(_EVERY)
        found = host.figures
        if found is None:
            continue
        outcome.peak = max(outcome.peak, _mb(found))
        outcome.fds = max(outcome.fds, found.descriptors)
        used += max(0.0, found.seconds - (last.seconds if last is not None else 0.0))
        last = found
        if found.memory > _MOST:
            seconds -= end - time.monotonic()
            break
    outcome.cores = used / seconds


def _mb(figures: Figures | None) -> float:
    return figures.memory / 1e6 if figures is not None else 0.0


@contextmanager
def _as_before(wanted: bool) -> Iterator[None]:
    """Start p2pd as it was without defences: with libp2p's DHT, its own relay, no soft limit."""
    options, environment = daemon._options, daemon._environment
    ours = ("-dht", "-relayB", "-relayM", "-relayDiscovery")

    def old(*given: Any) -> list[str]:  # noqa: ANN401
        return [one for one in options(*given) if not one.startswith(ours)] + ["-dhtServer=1"]

    if wanted:
        daemon._options = old
        daemon._environment = lambda config: {**environment(config), "GOMEMLIMIT": "off"}
    try:
        yield
    finally:
        daemon._options, daemon._environment = options, environment
