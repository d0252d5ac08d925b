"""Streams in memory: whole and in order until they break, in the way they were told to."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from giaann_p2p.net.clock import run
from giaann_p2p.net.memory import CAPACITY, Network
from giaann_p2p.net.transport import ByteStream
from giaann_p2p.swarm.wire.identity import Peer

A, B = Peer(b"a" * 32), Peer(b"b" * 32)


class Ends:
    """Two ends of a stream: a has dialled b."""

    def __init__(self, seed: int = 0) -> None:
        self.network = Network(random.Random(seed))
        self.accepted: list[ByteStream] = []
        self.network.node(B).listen(lambda peer, stream: self.accepted.append(stream))
        self.there = self.network.way(A, B)

    async def dial(self) -> tuple[ByteStream, ByteStream]:
        near = await self.network.node(A).dial(B)
        return near, self.accepted[-1]


def play(story: Callable[[Ends], Awaitable[None]], seed: int = 0) -> None:
    async def main() -> None:
        ends = Ends(seed)
        await story(ends)

    run(main())


def now() -> float:
    return asyncio.get_running_loop().time()


async def read_all(stream: ByteStream) -> bytes:
    data = b""
    while more := await stream.read():
        data += more
    return data


@pytest.mark.parametrize("seed", range(5))
def test_bytes_come_whole_and_in_order_however_they_are_cut(seed: int) -> None:
    async def story(ends: Ends) -> None:
        ends.there.latency = (0.0, 1.0)
        sent = random.Random(seed).randbytes(1 << 20)

        async def write(stream: ByteStream) -> None:
            await stream.write([sent[:100], memoryview(sent)[100:]])
            stream.close()

        near, far = await ends.dial()
        _, got = await asyncio.gather(write(near), read_all(far))
        assert got == sent
        far.close()
        await asyncio.sleep(1)
        assert ends.network.streams == 0

    play(story, seed)


def test_a_way_has_latency_and_bandwidth() -> None:
    async def story(ends: Ends) -> None:
        ends.there.latency = (2.0, 2.0)
        near, far = await ends.dial()
        start = now()
        ends.there.bandwidth = 1000.0
        await near.write([bytes(3000)])
        near.close()
        assert len(await read_all(far)) == 3000
        assert now() - start == pytest.approx(2 + 3)

    play(story)


def test_a_writer_waits_for_a_reader_that_is_slow() -> None:
    async def story(ends: Ends) -> None:
        near, far = await ends.dial()
        writing = asyncio.create_task(near.write([bytes(4 * CAPACITY)]))
        await asyncio.sleep(100)
        assert not writing.done()
        got = 0
        while got < 4 * CAPACITY:
            got += len(await far.read())
        await writing

    play(story)


def test_what_is_blocked_comes_later_and_dials_wait() -> None:
    async def story(ends: Ends) -> None:
        near, far = await ends.dial()
        ends.network.block(A, B)
        await near.write([b"hello"])
        dial = asyncio.create_task(ends.dial())
        reading = asyncio.create_task(far.read())
        await asyncio.sleep(1000)
        assert not reading.done()
        assert not dial.done()
        await far.write([b"the other way is open"])
        assert b"".join([await near.read()]) in b"the other way is open"
        ends.network.block(A, B, blocked=False)
        assert (await reading) in b"hello"
        await dial

    play(story)


def test_a_reset_breaks_both_sides() -> None:
    async def story(ends: Ends) -> None:
        near, far = await ends.dial()
        writing = asyncio.create_task(near.write([bytes(4 * CAPACITY)]))
        await asyncio.sleep(1)
        ends.network.reset(B, A)
        for deed in (writing, far.read(), near.read(), far.write([b"x"])):
            with pytest.raises(ConnectionResetError):
                await deed
        assert repr(ends.network) == "<Network: 1 peers listen, 0 streams>"

    play(story)


def test_an_abort_is_a_reset_to_the_other_side() -> None:
    async def story(ends: Ends) -> None:
        near, far = await ends.dial()
        near.abort()
        with pytest.raises(ConnectionResetError):
            await far.read()
        with pytest.raises(ConnectionResetError):
            await far.write([b"x"])
        far.abort()
        assert ends.network.streams == 0

    play(story)


def test_an_end_in_the_middle_looks_like_any_end() -> None:
    async def story(ends: Ends) -> None:
        near, far = await ends.dial()
        await near.write([b"first"])
        await asyncio.sleep(1)
        ends.there.latency = (1.0, 1.0)
        await near.write([b"second"])
        ends.network.end(A, B)
        assert await read_all(far) == b"first"
        await near.write([b"third"])  # as to a process that is gone
        await far.write([b"back"])
        assert (await near.read()) in b"back"

    play(story)


def test_a_dial_may_be_refused_or_doubled_or_given_up() -> None:
    async def story(ends: Ends) -> None:
        ends.there.doubled = 1.0
        await ends.dial()
        assert len(ends.accepted) == 2
        ends.network.way(B, A).latency = (9.0, 9.0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await ends.dial()
        with pytest.raises(ConnectionResetError):
            await ends.accepted[2].read()
        ends.network.stop(B)
        with pytest.raises(ConnectionRefusedError, match="nobody listens"):
            await ends.dial()

    play(story)


def test_a_peer_names_itself() -> None:
    async def story(ends: Ends) -> None:
        seen: list[Peer] = []
        ends.network.node(B).listen(lambda peer, stream: seen.append(peer))
        await ends.network.node(A).dial(B)
        assert seen == [A]
        assert ends.network.node(B).me == B

    play(story)
