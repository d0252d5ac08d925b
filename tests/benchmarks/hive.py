"""Calls over real p2pd's, beside what hivemind itself gives: a bare stream, and unary calls.

"Pipe" is our stream without the calls on it: what of the difference net/hive itself makes.

    python -m tests.benchmarks.hive [--seconds 1.5] [--rounds 3] [--profile]

The other side is a process of its own. All is measured in turns, several rounds of it, and each
figure is the median of its rounds; compare the ratios, for they hold on other machines too.
"""

import argparse
import asyncio
import cProfile
import pstats
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from hivemind.p2p import P2P, PeerID

from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.pipe import Pipe
from giaann_p2p.net.hive.streams import HiveStreams
from giaann_p2p.net.streams import StreamTransport

LOOPBACK = ("/ip4/127.0.0.1/tcp/0",)
SMALL, BIG = 64, 1 << 20
UNDER_WAY = {SMALL: 256, BIG: 4}
"""Calls at a time, where there are many."""
_LENGTH = 8
Peer = bytes
Told = tuple[list[str], list[str], list[str], bytes]
Turn = Callable[[int], Awaitable[None]]
"""Does something so many times."""


class Raw:
    """A message of hivemind's that is just bytes."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data

    def SerializeToString(self) -> bytes:  # noqa: N802  (as protobuf calls it)
        return self.data

    @classmethod
    def FromString(cls, data: bytes) -> "Raw":  # noqa: N802
        return cls(data)


class Side:
    """Ours and hivemind's own, in one process."""

    def __init__(self, host: Host, transport: StreamTransport, p2p: P2P, pipes: Host) -> None:
        self.host, self.transport, self.p2p, self.pipes = host, transport, p2p, pipes

    @classmethod
    async def start(cls, folder: Path, name: str, book: dict[Peer, tuple[str, ...]]) -> "Side":
        config = HostConfig(listen=LOOPBACK, folder=folder)
        host = await Host.start(folder / f"{name}.key", config)
        pipes = await Host.start(folder / f"{name}.pipes.key", config)
        streams = HiveStreams(host, lambda peer: book.get(peer, ()))
        p2p = await P2P.create(host_maddrs=LOOPBACK, auto_nat=False, nat_port_map=False)
        return cls(host, StreamTransport(streams), p2p, pipes)

    async def close(self) -> None:
        await self.transport.close()
        await self.host.close()
        await self.pipes.close()
        await self.p2p.shutdown()


async def serve(folder: Path) -> None:
    """Echo whatever comes; on a stream, and in a call, eight bytes ask for so many."""
    side = await Side.start(folder, "server", {})

    async def answer(peer: Peer, body: bytes) -> bytes:
        return bytes(int.from_bytes(body, "little")) if len(body) == _LENGTH else body

    async def echo(info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:  # noqa: ANN401
        while data := await reader.read(1 << 18):
            writer.write(data)
            await writer.drain()

    async def give(info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:  # noqa: ANN401
        while True:
            try:
                size = int.from_bytes(await reader.readexactly(_LENGTH), "little")
            except asyncio.IncompleteReadError:
                return
            writer.write(bytes(size))
            await writer.drain()

    async def unary(request: Raw, context: Any) -> Raw:  # noqa: ANN401
        return request

    async def repeat(pipe: Pipe) -> None:
        while data := await pipe.read():
            await pipe.write([data])
        pipe.close()

    repeating = []
    side.pipes.accept(lambda peer, pipe: repeating.append(asyncio.create_task(repeat(pipe))))
    side.transport.serve(answer)
    await side.p2p.add_binary_stream_handler("echo", echo)
    await side.p2p.add_binary_stream_handler("give", give)
    await side.p2p.add_protobuf_handler("unary", unary, Raw)
    addresses = [str(address) for address in await side.p2p.get_visible_maddrs()]
    told = (
        list(side.host.addresses),
        list(side.pipes.addresses),
        addresses,
        side.p2p.peer_id.to_bytes(),
    )
    print(msgspec.json.encode(told).decode(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await side.close()


async def turns(side: Side, peer: Peer, bare: PeerID, pipe: Pipe) -> dict[str, Turn]:
    """Return what is measured, by name."""
    bodies = {size: bytes(size) for size in (SMALL, BIG)}
    _, reader, writer = await side.p2p.call_binary_stream_handler(bare, "echo")
    _, giver, asker = await side.p2p.call_binary_stream_handler(bare, "give")

    async def call(body: bytes, size: int) -> None:
        answer = await side.transport.call(peer, body, timeout=30)
        if len(answer) != size:
            raise RuntimeError(f"{len(answer)} bytes of {size}")

    def calls(body: bytes, size: int, at_once: int) -> Turn:
        async def turn(times: int) -> None:
            async def some() -> None:
                for _ in range(-(-times // at_once)):
                    await call(body, size)

            await asyncio.gather(*[some() for _ in range(at_once)])

        return turn

    def stream(size: int, at_once: int) -> Turn:
        async def turn(times: int) -> None:
            room = asyncio.Semaphore(at_once)

            async def write() -> None:
                for _ in range(times):
                    await room.acquire()
                    writer.write(bodies[size])
                    await writer.drain()

            writing = asyncio.create_task(write())
            for _ in range(times):
                await reader.readexactly(size)
                room.release()
            await writing

        return turn

    def piped(size: int, at_once: int) -> Turn:
        async def turn(times: int) -> None:
            room = asyncio.Semaphore(at_once)

            async def write() -> None:
                for _ in range(times):
                    await room.acquire()
                    await pipe.write([bodies[size]])

            writing = asyncio.create_task(write())
            came, whole = 0, 0
            while whole < times:
                came += len(await pipe.read())
                while whole < came // size:
                    whole += 1
                    room.release()
            await writing

        return turn

    async def given(times: int) -> None:
        for _ in range(times):
            asker.write(BIG.to_bytes(_LENGTH, "little"))
        await asker.drain()
        for _ in range(times):
            await giver.readexactly(BIG)

    async def unary(times: int) -> None:
        for _ in range(times):
            await side.p2p.call_protobuf_handler(bare, "unary", Raw(bodies[SMALL]), Raw)

    wish = BIG.to_bytes(_LENGTH, "little")
    return {
        "small, one by one: bare": stream(SMALL, 1),
        "small, one by one: pipe": piped(SMALL, 1),
        "small, one by one: calls": calls(bodies[SMALL], SMALL, 1),
        "small, one by one: unary": unary,
        "small, many: bare": stream(SMALL, UNDER_WAY[SMALL]),
        "small, many: pipe": piped(SMALL, UNDER_WAY[SMALL]),
        "small, many: calls": calls(bodies[SMALL], SMALL, UNDER_WAY[SMALL]),
        "1 MiB there and back: bare": stream(BIG, UNDER_WAY[BIG]),
        "1 MiB there and back: pipe": piped(BIG, UNDER_WAY[BIG]),
        "1 MiB there and back: calls": calls(bodies[BIG], BIG, UNDER_WAY[BIG]),
        "1 MiB pulled: bare": given,
        "1 MiB pulled: calls": calls(wish, BIG, UNDER_WAY[BIG]),
    }


async def timed(turn: Turn, seconds: float) -> float:
    """Return how many seconds one time takes."""
    times, took = 4, 0.0
    while took < seconds / 4:
        times *= 2
        start = time.perf_counter()
        await turn(times)
        took = time.perf_counter() - start
    times = max(4, int(times * seconds / took))
    start = time.perf_counter()
    await turn(times)
    return (time.perf_counter() - start) / times


async def measure(folder: Path, seconds: float, rounds: int, *, profile: bool) -> None:
    """Start the other side, measure, print."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.hive", "--serve", folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:  # noqa: ASYNC220
        told = await asyncio.to_thread(child.stdout.readline)  # type: ignore[union-attr]
        addresses, pipes, ways, number = msgspec.json.decode(told, type=Told)
        side = await Side.start(folder, "client", {})
        (peer,) = await side.host.connect(addresses)
        bare = PeerID(number)
        await side.p2p._client.connect(bare, [_way(way) for way in ways])
        found: dict[str, list[float]] = {}
        (repeater,) = await side.pipes.connect(pipes)
        pipe = await side.pipes.open_stream(repeater, [], 5)
        measured = await turns(side, peer, bare, pipe)
        for _ in range(rounds):
            for name, turn in measured.items():
                found.setdefault(name, []).append(await timed(turn, seconds))
        if profile:
            await profiled(measured["1 MiB pulled: calls"], 200)
            await profiled(measured["small, one by one: calls"], 3000)
        await side.close()
        child.communicate()
    show({name: median(values) for name, values in found.items()})


async def profiled(turn: Turn, times: int) -> None:
    """Print where the time of this side goes."""
    with cProfile.Profile() as profile:
        await turn(times)
    pstats.Stats(profile).sort_stats("tottime").print_stats(14)


def show(found: dict[str, float]) -> None:
    """Print a table; a ratio says how much of the bare stream's speed there is."""
    table = Table("", "µs each", "a second", "MB/s", "of the bare stream")
    for name, took in found.items():
        what = name.split(":")[0]
        speed = f"{BIG / took / 1e6:,.0f}" if "MiB" in what else ""
        ratio = found[f"{what}: bare"] / took
        table.add_row(name, f"{took * 1e6:,.0f}", f"{1 / took:,.0f}", speed, f"{ratio:.2f}")
    Console().print(table)


def _way(address: str) -> Any:  # noqa: ANN401
    from hivemind.utils.multiaddr import Multiaddr

    return Multiaddr(address.rpartition("/p2p/")[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve(options.serve))
        return
    with tempfile.TemporaryDirectory(prefix="g") as name:
        uvloop.run(measure(Path(name), options.seconds, options.rounds, profile=options.profile))


if __name__ == "__main__":
    main()
