"""A bare stream of hivemind's to a process that sends back whatever comes: what all is held to.

python -m tests.benchmarks.network.bare  is that process; it ends with its standard input.
"""

import asyncio
import subprocess
import sys
import time
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import uvloop

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from hivemind.p2p import P2P, PeerID
    from hivemind.utils.multiaddr import Multiaddr

_LOOPBACK = ("/ip4/127.0.0.1/tcp/0",)
_PIECE = 1 << 18
Told = tuple[list[str], bytes]


class Bare:
    """This side of the stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def round_trips(self, data: bytes, times: int) -> list[float]:
        """Return the seconds that bytes take there and back, each time."""
        took = []
        for _ in range(times):
            began = time.perf_counter()
            self._writer.write(data)
            await self._writer.drain()
            await self._reader.readexactly(len(data))
            took.append(time.perf_counter() - began)
        return took

    async def rate(self, data: bytes, seconds: float, under_way: int) -> float:
        """Return the bytes a second that come back when so many messages are under way."""
        room, over = asyncio.Semaphore(under_way), False
        sent = came = 0

        async def write() -> None:
            nonlocal sent
            while not over:
                await room.acquire()
                sent += 1
                self._writer.write(data)
                await self._writer.drain()

        began = time.perf_counter()
        writing = asyncio.create_task(write())
        while time.perf_counter() - began < seconds:
            await self._reader.readexactly(len(data))
            came += 1
            room.release()
        took = time.perf_counter() - began
        over = True
        room.release()
        await writing
        await self._reader.readexactly(len(data) * (sent - came))
        return came * len(data) / took


@asynccontextmanager
async def bare() -> AsyncIterator[Bare]:
    """Open the stream to a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.network.bare"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:  # noqa: ASYNC220
        line = await asyncio.to_thread(child.stdout.readline)  # type: ignore[union-attr]
        addresses, number = msgspec.json.decode(line, type=Told)
        peer = PeerID(number)
        p2p = await P2P.create(host_maddrs=_LOOPBACK, auto_nat=False, nat_port_map=False)
        try:
            await p2p._client.connect(peer, [_way(address) for address in addresses])
            _, reader, writer = await p2p.call_binary_stream_handler(peer, "echo")
            yield Bare(reader, writer)
            writer.close()
        finally:
            await p2p.shutdown()
            child.stdin.close()  # type: ignore[union-attr]


async def _serve() -> None:
    async def echo(info: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:  # noqa: ANN401
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()

    p2p = await P2P.create(host_maddrs=_LOOPBACK, auto_nat=False, nat_port_map=False)
    await p2p.add_binary_stream_handler("echo", echo)
    addresses = [str(address) for address in await p2p.get_visible_maddrs()]
    print(msgspec.json.encode((addresses, p2p.peer_id.to_bytes())).decode(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await p2p.shutdown()


def _way(address: str) -> Any:  # noqa: ANN401
    return Multiaddr(address.rpartition("/p2p/")[0])


if __name__ == "__main__":
    uvloop.run(_serve())
