"""Calls over real p2pd's, whatever happens to either side."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
import uvloop

from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import Broken, DialPaused, NoConnection, Unreachable
from giaann_p2p.net.hive.life import Life
from giaann_p2p.net.hive.pipe import Pipe
from giaann_p2p.net.limits import Limits, TransportLimits
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.net.transport import ByteStream, Peer
from giaann_p2p.swarm.wire.identity import Identity
from tests.unit.net.hive.helpers import Place, echo, hosts, random_bytes, stop, until

GHOST = Identity.from_seed(bytes(32)).peer
WARY = TransportLimits(
    connection=Limits(ping_after=0.1, silent_after=0.5), drain_within=0.2, linger=0.2
)


async def pair(place: Place) -> tuple[StreamTransport, StreamTransport]:
    transports = [place.transport(await place.host()) for _ in range(2)]
    for transport in transports:
        transport.serve(echo)
    return transports[0], transports[1]


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_calls_of_all_sizes_both_ways(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def story(place: Place) -> None:
        first, second = await pair(place)
        for size in (0, 1, 5000, 300_000, 8 << 20):
            body = random_bytes(size)
            assert await first.call(second.me, body, timeout=60) == body
            assert await second.call(first.me, body, timeout=60) == body
        assert (first.connections, second.connections) == (1, 1)
        await asyncio.gather(first.close(), second.close())

    hosts(story, loop)


def test_quic_is_there_for_who_wants_it() -> None:
    async def story(place: Place) -> None:
        listen = ("/ip4/127.0.0.1/udp/0/quic-v1",)
        made = [await place.host(listen=listen) for _ in range(2)]
        assert all("/quic-v1/p2p/" in host.addresses[0] for host in made)
        assert all("/udp/0/" not in host.config.listen[0] for host in made)
        first, second = map(place.transport, made)
        second.serve(echo)
        body = random_bytes(300_000)
        assert await first.call(second.me, body, timeout=60) == body
        await asyncio.gather(first.close(), second.close())

    hosts(story)


def test_many_at_once_of_many_peers() -> None:
    async def story(place: Place) -> None:
        transports = [place.transport(await place.host()) for _ in range(3)]
        for transport in transports:
            transport.serve(echo)

        async def ask(number: int) -> None:
            source, target = transports[number % 3], transports[(number + 1 + number % 2) % 3]
            body = random_bytes(number * 997 % 70_000)
            assert await source.call(target.me, body, timeout=60) == body

        await asyncio.gather(*[ask(number) for number in range(600)])
        await asyncio.gather(*[transport.close() for transport in transports])

    hosts(story)


def test_nobody_there_is_known_at_once() -> None:
    async def story(place: Place) -> None:
        first, second = await pair(place)
        with pytest.raises(Unreachable, match="cannot be reached"):  # no address of it
            await first.call(GHOST, b"", timeout=5)
        place.book[GHOST] = ("/ip4/127.0.0.1/tcp/9/p2p/x", *place.book[second.me])
        with pytest.raises(Unreachable, match="cannot be reached"):  # addresses of others
            await first.call(GHOST, b"", timeout=5)
        await asyncio.gather(first.close(), second.close())
        await place.hosts[1].close()
        third = place.transport(place.hosts[0])
        with pytest.raises(Unreachable, match="cannot be reached"):
            await third.call(second.me, b"", timeout=5)
        await third.close()

    hosts(story)


def test_a_dial_soon_after_a_failed_one_may_be_tried_again() -> None:
    async def story(place: Place) -> None:
        first, second = await pair(place)
        await asyncio.gather(first.close(), second.close())
        await place.hosts[1].close()
        third = place.transport(place.hosts[0])
        with pytest.raises(Unreachable, match="connection refused") as refused:
            await third.call(second.me, b"", timeout=5)
        with pytest.raises(DialPaused, match="dial backoff"):
            await third.call(second.me, b"", timeout=5)
        assert not isinstance(refused.value, NoConnection)
        await third.close()

    hosts(story)


def test_who_takes_no_streams_opens_none() -> None:
    async def story(place: Place) -> None:
        first, second = await pair(place)
        place.streams(place.hosts[1]).stop()
        with pytest.raises(PeerError, match=r"the stream ended|lost"):
            await first.call(second.me, b"", timeout=5)
        await asyncio.gather(first.close(), second.close())

    hosts(story)


def test_streams_end_with_their_host() -> None:
    async def story(place: Place) -> None:
        first, second = await place.host(), await place.host()
        taken: list[Pipe] = []
        second.accept(lambda peer, pipe: taken.append(pipe))
        stream = await place.streams(first).dial(second.me)
        await until(lambda: bool(taken))
        read = asyncio.create_task(stream.read())
        await asyncio.sleep(0)
        await first.close()
        with pytest.raises(ConnectionAbortedError, match="leaving the network"):
            await read
        assert await taken[0].read() == b""
        taken[0].close()

    hosts(story)


def test_a_dial_that_is_given_up_leaves_no_stream() -> None:
    async def story(place: Place) -> None:
        first, second = await place.host(), await place.host()
        taken: list[Pipe] = []
        second.accept(lambda peer, pipe: taken.append(pipe))
        streams = place.streams(first)
        for turns in range(0, 300, 5):  # shorter steps than a loop's timer has
            task = asyncio.create_task(streams.dial(second.me))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            (end,) = await asyncio.gather(task, return_exceptions=True)
            if not isinstance(end, BaseException):
                end.abort()
        await until(lambda: not first.control.streams and not first.control._asking)
        for pipe in taken:
            pipe.abort()

    hosts(story)


def test_all_that_was_written_arrives_before_the_end() -> None:
    async def story(place: Place) -> None:
        first, second = await place.host(), await place.host()
        taken: list[ByteStream] = []

        def accept(peer: Peer, stream: ByteStream) -> None:
            assert peer == first.me
            taken.append(stream)

        place.streams(second).listen(accept)
        for talkative in (False, True):
            stream = await place.streams(first).dial(second.me)
            data = random_bytes(6 << 20)
            await until(lambda: bool(taken))
            theirs = taken.pop()
            if talkative:  # and the other side says what nobody will read
                await theirs.write([bytes(100_000)])
            writing = asyncio.create_task(stream.write([data]))
            writing.add_done_callback(lambda task, stream=stream: stream.close())
            found = b""
            while got := await theirs.read():
                found += got
            assert found == data
            theirs.close()
        await until(lambda: not first.control.streams and not second.control.streams)

    hosts(story)


@pytest.mark.parametrize("victim", [0, 1])
def test_a_p2pd_that_is_killed_breaks_calls_and_the_next_ones_go_on(victim: int) -> None:
    async def story(place: Place) -> None:
        first, second = await pair(place)
        asked = asyncio.Event()

        async def slow(peer: Peer, body: bytes) -> bytes:
            asked.set()
            await asyncio.sleep(30)
            return body

        second.serve(slow)
        call = asyncio.create_task(first.call(second.me, b"x", timeout=30))
        await asked.wait()
        os.kill(place.note(place.hosts[victim]), signal.SIGKILL)
        with pytest.raises(Broken):
            await call
        second.serve(echo)
        await until(lambda: place.hosts[victim].deaths == 1 and place.hosts[victim].pid is not None)
        for source, target in ((first, second), (second, first)):
            for _ in range(100):
                try:
                    assert await source.call(target.me, b"again", timeout=60) == b"again"
                    break
                except PeerError:
                    await asyncio.sleep(0.05)
            else:
                pytest.fail("nothing is answered after p2pd was started again")
        await asyncio.gather(first.close(), second.close())

    hosts(story)


def test_who_was_dialled_in_vain_while_its_p2pd_was_away_is_reached_when_it_is_back() -> None:
    async def story(place: Place) -> None:
        lives: list[Life] = []
        away, other = await place.host(again_after=0.5), await place.host()
        first, second = place.transport(away), place.transport(other)
        first.serve(echo)
        assert await second.call(first.me, b"x", timeout=60) == b"x"

        async def born(life: Life) -> None:
            lives.append(life)

        away.next_lives(born)  # after what the streams do then
        os.kill(place.note(away), signal.SIGKILL)
        await until(lambda: away.deaths == 1)
        for _ in range(3):
            with pytest.raises(PeerError):
                await second.call(first.me, b"x", timeout=5)
        await until(lambda: bool(lives))
        assert await second.call(first.me, b"x", timeout=60) == b"x"
        await asyncio.gather(first.close(), second.close())

    hosts(story)


def test_a_p2pd_that_is_stopped_counts_as_gone_when_silent() -> None:
    async def story(place: Place) -> None:
        await place.host()
        await place.host()
        first, second = (place.transport(host, WARY) for host in place.hosts)
        second.serve(echo)
        assert await first.call(second.me, b"x", timeout=60) == b"x"
        await stop(place.note(place.hosts[1]))
        with pytest.raises(Broken, match="silent for"):
            await first.call(second.me, b"x", timeout=30)
        os.kill(place.note(place.hosts[1]), signal.SIGCONT)
        await asyncio.gather(first.close(), second.close())

    hosts(story)


PROGRAM = """
import asyncio, pathlib, sys, warnings
warnings.simplefilter("ignore")
from giaann_p2p.net.hive.host import Host
from giaann_p2p.net.hive.config import HostConfig
from giaann_p2p.net.hive.streams import HiveStreams
from giaann_p2p.net.limits import Limits, TransportLimits
from giaann_p2p.net.streams import StreamTransport
async def main():
    folder = pathlib.Path(sys.argv[1])
    config = HostConfig(listen=("/ip4/127.0.0.1/tcp/0",), folder=folder)
    host = await Host.start(folder / "child.key", config)
    limits = TransportLimits(connection=Limits(longest=1 << 26))
    transport = StreamTransport(HiveStreams(host, lambda peer: ()), limits)
    async def endless(peer, body):
        return bytes(60_000_000)
    transport.serve(endless)
    print(host.addresses[0], flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.slow
def test_an_answer_of_who_is_killed_in_the_middle_is_no_answer() -> None:
    async def story(place: Place) -> None:
        limits = TransportLimits(connection=Limits(longest=1 << 26))
        first = place.transport(await place.host(), limits)
        command = [sys.executable, "-c", PROGRAM, str(place.folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:  # noqa: ASYNC220
            assert child.stdout is not None
            address = child.stdout.readline().decode().strip()
            (peer,) = await place.hosts[0].connect([address])
            call = asyncio.create_task(first.call(peer, b"", timeout=30))
            try:
                await until(lambda: first._room_in.used > 0)
            finally:
                child.kill()
            with pytest.raises(Broken):
                await call
        await first.close()
        await place.host()  # which sweeps after the child

    hosts(story)
