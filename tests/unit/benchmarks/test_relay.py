"""The relay, between a client and a server of this process."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from tests.benchmarks.swarm import relay
from tests.benchmarks.swarm.relay import relayed

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
DELAY, SETTLED = 0.02, 0.1
LARGE = bytes(range(256)) * (1 << 12)


@asynccontextmanager
async def connected(
    serve: Serve, delay: float = DELAY
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to a server, over a relay."""
    listening = socket.create_server(("127.0.0.1", 0))
    near = listening.getsockname()[1]
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        far = server.sockets[0].getsockname()[1]
        async with relayed(listening, far, delay):
            reader, writer = await asyncio.open_connection("127.0.0.1", near)
            try:
                yield reader, writer
            finally:
                writer.close()
                await writer.wait_closed()
        await asyncio.sleep(SETTLED)  # the server hears of the end


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


def test_nothing_arrives_before_its_time() -> None:
    came = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            came.append(await reader.read(1))
        writer.close()

    async def run() -> None:
        async with connected(note, delay=3600) as (_, writer):
            writer.write(b"x")
            await asyncio.sleep(SETTLED)
            assert came == []

    asyncio.run(run())


@pytest.mark.parametrize("delay", [0, DELAY])
def test_much_goes_through_whole_and_its_end_follows(
    delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "_MOST", 1 << 18)  # so that senders have to wait

    async def run() -> None:
        async with connected(echo, delay) as (reader, writer):
            reading = asyncio.create_task(reader.read(-1))
            for _ in range(3):
                writer.write(LARGE)
                await writer.drain()
            writer.write_eof()
            assert await reading == 3 * LARGE

    asyncio.run(run())


def test_a_server_that_speaks_first_and_closes_is_heard_to_its_end() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello, and goodbye")
        writer.close()

    async def run() -> None:
        async with connected(greet) as (reader, _):
            assert await reader.read(-1) == b"hello, and goodbye"

    asyncio.run(run())


def test_where_nobody_listens_the_connection_is_closed() -> None:
    async def run() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        with socket.create_server(("127.0.0.1", 0)) as gone:
            nobody = gone.getsockname()[1]
        async with relayed(listening, nobody, DELAY):
            near = listening.getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", near)
            assert await reader.read(-1) == b""
            writer.close()
            await writer.wait_closed()
            await asyncio.sleep(SETTLED)

    asyncio.run(run())
