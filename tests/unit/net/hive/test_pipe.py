"""A socket to p2pd: what was sent arrives, in order; who is slow stops the other."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from giaann_p2p.net.hive.pipe import Pipe, framed
from tests.unit.net.hive.helpers import nothing_runs, random_bytes, until

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [
    asyncio.new_event_loop,
    uvloop.new_event_loop,
]
Story = Callable[[Pipe, Pipe], Awaitable[None]]


def between(story: Story, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def tell() -> None:
        among: set[Pipe] = set()
        pipes = []
        for end in socket.socketpair():
            _, pipe = await asyncio.get_running_loop().create_connection(
                lambda: Pipe(among), sock=end
            )
            pipes.append(pipe)
        assert among == set(pipes)
        await story(*pipes)
        for pipe in pipes:
            pipe.abort()
        await until(lambda: not among)
        await nothing_runs()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(tell())


async def all_of(pipe: Pipe) -> bytes:
    found = bytearray()
    while data := await pipe.read():
        found += data
    return bytes(found)


@pytest.mark.parametrize("loop", LOOPS)
def test_all_arrives_before_the_end(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def story(here: Pipe, there: Pipe) -> None:
        data = random_bytes(10_000_000)
        read = asyncio.create_task(all_of(there))
        at = 0
        while at < len(data):
            await here.write(
                [data[at : at + 300_000], memoryview(data)[at + 300_000 : at + 300_003]]
            )
            at += 300_003
        here.close()
        assert await read == data
        assert "ended" in repr(there)
        there.close()

    between(story, loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_short_never_overtakes_what_is_long(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def story(here: Pipe, there: Pipe) -> None:
        sent = bytearray()
        read = asyncio.create_task(all_of(there))
        for _ in range(5):
            for size in (10, 70_000, 10, 70_000, 10):  # without a turn of the loop in between
                data = random_bytes(size)
                sent += data
                assert here.room
                here.put([data[:7], data[7:]])
            await here.write([b"!"])
            sent += b"!"
            await until(lambda: here.room and len(there._chunks) == 0)
            await asyncio.sleep(0.01)
            here._in_a_row = 0
        here.close()
        assert await read == sent
        there.close()

    between(story, loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_what_is_delivered_comes_after_what_is_read(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def story(here: Pipe, there: Pipe) -> None:
        found = bytearray()
        here.put([b"first "])
        await until(lambda: bool(there._held))
        there.deliver(found.extend)
        here.put([b"second "])
        await until(lambda: there._held == len(b"first second "))
        assert not found
        while there._held:
            found += await there.read()
        here.put([b"third"])
        await until(lambda: found == b"first second third")
        here.close()
        assert await there.read() == b""
        there.close()

    between(story, loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_who_does_not_read_stops_who_writes(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def story(here: Pipe, there: Pipe) -> None:
        sent = 0

        async def flood() -> None:
            nonlocal sent
            while True:
                await here.write([bytes(100_000)])
                sent += 100_000

        task = asyncio.create_task(flood())
        await asyncio.sleep(0.1)
        held, before = there._held, sent
        await asyncio.sleep(0.05)
        assert (held, before) == (there._held, sent)
        assert 1 << 20 <= held < 3 << 20
        for _ in range(200):
            await there.read()
        assert sent > before + 2_000_000
        there.abort()
        with pytest.raises(ConnectionError):
            await task

    between(story, loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_who_closes_hears_nothing_more_and_is_not_stopped_by_it(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def story(here: Pipe, there: Pipe) -> None:
        flood = asyncio.create_task(there.write([bytes(20_000_000)]))
        await until(lambda: here._stopped)
        await here.write([b"last words"])
        here.close()
        here.close()
        with pytest.raises(ConnectionAbortedError):
            await here.write([b"more"])
        await flood
        assert await here.read() == b""
        assert await there.read() == b"last words"
        assert await there.read() == b""
        there.close()

    between(story, loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_an_abort_wakes_all_who_wait(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def story(here: Pipe, there: Pipe) -> None:
        reads = [asyncio.create_task(here.read()) for _ in range(2)]
        await asyncio.sleep(0)
        here.abort("the test says so")
        for read in reads:
            with pytest.raises(ConnectionAbortedError, match="the test says so"):
                await read
        with pytest.raises(ConnectionAbortedError):
            await here.write([b"x"])
        assert await there.read() == b""

    between(story, loop)


def test_a_reader_that_gives_up_takes_nothing() -> None:
    async def story(here: Pipe, there: Pipe) -> None:
        read = asyncio.create_task(here.read())
        await asyncio.sleep(0)
        read.cancel()
        await asyncio.gather(read, return_exceptions=True)
        assert here._readers == []
        await there.write([b"x"])
        assert await here.read() == b"x"

    between(story, uvloop.new_event_loop)


@pytest.mark.parametrize("length", [0, 1, 127, 128, 300, 20_000])
def test_messages_of_p2pd_and_what_follows(length: int) -> None:
    async def story(here: Pipe, there: Pipe) -> None:
        for byte in framed(bytes(length))[:3]:
            await there.write([bytes([byte])])
            await asyncio.sleep(0)
        await there.write([framed(bytes(length))[3:], b"stream"] if length > 1 else [b"stream"])
        want = bytes(length)
        assert await here.message(1 << 20) == want
        rest = b""
        while not rest.endswith(b"stream"):
            rest += await here.read()

    between(story, uvloop.new_event_loop)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xff\x7f", "announced a message of 2,097,151 bytes"),
        (b"\xff" * 9, "announced a message"),
        (b"\x05abc", "has closed"),
        (b"", "has closed"),
    ],
)
def test_messages_that_cannot_be(data: bytes, words: str) -> None:
    async def story(here: Pipe, there: Pipe) -> None:
        await there.write([data])
        there.close()
        with pytest.raises(ConnectionError, match=words):
            await here.message(1000)

    between(story, uvloop.new_event_loop)
