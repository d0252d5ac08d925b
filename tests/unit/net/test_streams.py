"""Calls between peers over streams in memory, whatever happens to the streams."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from itertools import pairwise
from typing import Any

import pytest

from giaann_p2p.errors import PeerError, StoreError, UsageError
from giaann_p2p.net.clock import run
from giaann_p2p.net.errors import Broken, Reason, Refused, Unreachable
from giaann_p2p.net.frames import Buffer, Kind, Sealer
from giaann_p2p.net.limits import Limits, TransportLimits
from giaann_p2p.net.link import Link
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.swarm.wire.identity import Peer
from tests.unit.net.helpers import QUICK, joined
from tests.unit.net.helpers_swarm import LIMITS, Place, peer_id, swarm


async def fate(place: Place, source: int, target: int, body: bytes, timeout: float) -> str:  # noqa: ASYNC109
    """Call, and return how it ended; check that it ended in time."""
    loop = asyncio.get_running_loop()
    start = loop.time()
    try:
        answer = await place.peers[source].call(place.ids[target], body, timeout=timeout)
    except PeerError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        assert loop.time() <= start + timeout + 1e-6
    assert answer == body * 2
    return "answered"


def test_both_ways_over_one_connection() -> None:
    async def story(place: Place) -> None:
        for size in (0, 10, 300_000, 2 << 20):
            assert await fate(place, 0, 1, bytes(size), 5) == "answered"
            assert await fate(place, 1, 0, bytes(size), 5) == "answered"
        assert [peer.connections for peer in place.peers] == [1, 1]
        assert place.network.streams == 1

    assert swarm(story).lost == []


def test_pings_tell_how_far_a_peer_is() -> None:
    async def story(place: Place) -> None:
        for ends in (place.ids, place.ids[::-1]):
            place.network.way(*ends).latency = (0.25, 0.25)
        assert place.peers[0].round_trip(place.ids[1]) is None
        assert await fate(place, 0, 1, b"?", 5) == "answered"
        await asyncio.sleep(20)
        assert place.peers[0].round_trip(place.ids[1]) == pytest.approx(0.5)

    assert swarm(story).lost == []


@pytest.mark.parametrize(("size", "at_once"), [(1, 32), (100_000, 1)])
def test_who_asks_a_lot_at_once_is_answered_over_many_turns(size: int, at_once: int) -> None:
    async def story(place: Place) -> None:
        loop, sealer, turns = asyncio.get_running_loop(), Sealer(1), list[int]()
        asked = 0

        def answer(peer: bytes, body: bytes) -> bytes:
            nonlocal asked
            asked += 1
            return bytes(size)

        def turn() -> None:
            turns.append(asked)
            if len(turns) < 1000:
                loop.call_soon(turn)

        place.peers[0].serve(answer)
        stream = await place.network.node(peer_id(99)).dial(place.ids[0])
        requests = [joined(sealer.seal(Kind.REQUEST, 2 * n + 1, b"?")) for n in range(70)]
        requests.append(joined(sealer.seal(Kind.CANCEL, 139)))
        await stream.write([sealer.hello, *requests])
        loop.call_soon(turn)
        await asyncio.sleep(5)
        assert asked == 69
        steps = [later - earlier for earlier, later in pairwise(turns)]
        assert max(steps) == at_once
        stream.abort()

    swarm(story, limits=TransportLimits(connection=Limits(calls=100)))


def test_a_peer_that_asks_and_never_reads_is_dropped() -> None:
    async def story(place: Place) -> None:
        sealer = Sealer(1)
        stream = await place.network.node(peer_id(99)).dial(place.ids[0])
        await stream.write([sealer.hello])

        async def ask() -> None:
            for number in range(1, 10_000, 2):
                await asyncio.sleep(0.01)
                await stream.write(sealer.seal(Kind.REQUEST, number, bytes(100_000)))
                assert place.peers[0]._room_out.used <= QUICK.bytes_out
                assert place.peers[0]._room_in.used <= QUICK.bytes_in

        with pytest.raises(ConnectionResetError):
            await ask()
        await asyncio.sleep(2)
        stream.abort()
        ((_, _, why),) = place.lost
        assert why.endswith("more than 96 control frames wait unread")

    swarm(story)


def test_a_stream_that_fails_as_no_stream_should_ends_its_connection() -> None:
    async def story(place: Place) -> None:
        assert await fate(place, 0, 1, b"?", 5) == "answered"
        (link,) = place.peers[0]._all
        link._stream._incoming._arrived.append(None)  # type: ignore[attr-defined]
        ending = await fate(place, 0, 1, b"?", 5)
        assert ending.startswith("Broken: this peer ended the connection")
        (complaint,) = place.complaints
        assert isinstance(complaint["exception"], TypeError)
        place.complaints.clear()
        assert await fate(place, 0, 1, b"?", 5) == "answered"

    swarm(story)


def test_calls_share_a_dial() -> None:
    async def story(place: Place) -> None:
        place.network.way(*place.ids).latency = (0.1, 0.2)
        fates = await asyncio.gather(*[fate(place, 0, 1, b"?", 5) for _ in range(8)])
        assert set(fates) == {"answered"}

    assert sum(" dial " in line for line in swarm(story).trace) == 1


@pytest.mark.parametrize("seed", range(20))
def test_who_dial_each_other_at_once_end_with_one_connection(seed: int) -> None:
    async def story(place: Place) -> None:
        for ends in (place.ids, place.ids[::-1]):
            place.network.way(*ends).latency = (0.01, 0.3)
        for pause in (0, 0, 1, 9):
            fates = [fate(place, side, 1 - side, b"?", 5) for side in (0, 1) for _ in range(3)]
            assert set(await asyncio.gather(*fates)) == {"answered"}
            await asyncio.sleep(pause)
        assert [peer.connections for peer in place.peers] == [1, 1]

    assert swarm(story, seed=seed).lost == []


@pytest.mark.parametrize(("hasty", "fates"), [(3, {"answered"}), (4, {"Unreachable"})])
def test_a_connection_that_gives_way_as_soon_as_it_begins_is_dialled_again(
    hasty: int, fates: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(place: Place) -> None:
        dialled, links = place.peers[0]._dialled, list[Link]()

        async def short(peer: Peer, deadline: float) -> Link:
            link = await dialled(peer, deadline)
            if len(links) < hasty:
                links.append(link)
                link.goodbye()
            return link

        monkeypatch.setattr(place.peers[0], "_dialled", short)
        found = await fate(place, 0, 1, b"?", 5)
        assert {found.partition(":")[0]} == fates

    swarm(story)


def test_nobody_there_is_unreachable_at_once() -> None:
    async def story(place: Place) -> None:
        with pytest.raises(Unreachable, match="cannot be reached: nobody listens there"):
            await place.peers[0].call(peer_id(77), b"", timeout=60)

    swarm(story)


@pytest.mark.parametrize(
    ("timeout", "ending"),
    [
        (2, "NoConnection: the peer did not accept a connection in time; nothing was sent"),
        (9, "NoConnection: the peer cannot be reached: no answer for 5 s"),
    ],
)
def test_a_dial_that_is_never_answered_ends_in_time(timeout: float, ending: str) -> None:
    async def story(place: Place) -> None:
        place.network.way(*place.ids).dials = False
        assert await fate(place, 0, 1, b"?", timeout) == ending
        place.network.way(*place.ids).dials = True
        await asyncio.sleep(10)
        assert await fate(place, 0, 1, b"?", 5) == "answered"

    swarm(story)


def test_a_reset_breaks_what_is_open_and_the_next_call_dials_again() -> None:
    async def story(place: Place) -> None:
        async def slow(peer: Peer, body: bytes) -> bytes:
            await asyncio.sleep(3)
            return body * 2

        place.peers[1].serve(slow)
        waiting = asyncio.create_task(fate(place, 0, 1, b"?", 10))
        await asyncio.sleep(1)
        place.network.reset(*place.ids)
        assert (await waiting).startswith("Broken: the connection to the peer was lost")
        assert await fate(place, 0, 1, b"?", 5) == "answered"

    lost = swarm(story).lost
    assert sorted(pair[:2] for pair in lost) == [(1, 2), (2, 1)]


def test_what_was_not_sent_when_a_connection_was_lost_is_sent_over_the_next() -> None:
    async def story(place: Place) -> None:
        assert await fate(place, 0, 1, b"?", 5) == "answered"
        place.network.block(*place.ids)
        fates = [asyncio.create_task(fate(place, 0, 1, bytes(2 << 20), 9)) for _ in range(2)]
        await asyncio.sleep(1)
        later = asyncio.create_task(fate(place, 0, 1, b"?", 9))
        await asyncio.sleep(1)
        place.network.block(*place.ids, blocked=False)
        place.network.reset(*place.ids)
        assert (await fates[0]).startswith("Broken")
        assert await later == "answered"
        await fates[1]

    swarm(story)


def test_an_end_without_an_error_in_the_middle_of_a_body_is_no_answer() -> None:
    async def story(place: Place) -> None:
        place.network.way(*place.ids[::-1]).bandwidth = 1e6
        waiting = asyncio.create_task(fate(place, 0, 1, bytes(1 << 20), 10))
        await asyncio.sleep(1)
        place.network.end(*place.ids[::-1])
        assert await waiting == "Broken: the stream ended before the peer said goodbye"
        assert await fate(place, 0, 1, b"?", 5) == "answered"

    swarm(story)


@pytest.mark.parametrize("both", [False, True])
def test_a_peer_that_stops_counts_as_gone_and_comes_back(both: bool) -> None:
    async def story(place: Place) -> None:
        assert await fate(place, 0, 1, b"?", 5) == "answered"
        one, two = place.ids
        place.network.block(two, one)
        if both:
            place.network.block(one, two)
        ending = await fate(place, 0, 1, b"?", 3)
        assert ending == "TimedOut: the peer has not answered in time"
        await asyncio.sleep(20)
        assert (1, 2) in {pair[:2] for pair in place.lost}
        assert (await fate(place, 0, 1, b"?", 3)).startswith("NoConnection")
        place.network.freeze(one, [two], frozen=False)
        await asyncio.sleep(6)
        for side in (0, 1):
            assert await fate(place, side, 1 - side, b"?", 5) == "answered"

    swarm(story)


def test_a_pause_shorter_than_silence_loses_nothing() -> None:
    async def story(place: Place) -> None:
        assert await fate(place, 0, 1, b"?", 5) == "answered"
        waiting = asyncio.create_task(fate(place, 0, 1, bytes(1 << 20), 30))
        await asyncio.sleep(0)
        place.network.freeze(place.ids[0], place.ids[1:])
        await asyncio.sleep(10)
        place.network.freeze(place.ids[0], place.ids[1:], frozen=False)
        assert await waiting == "answered"

    assert swarm(story).lost == []


def test_small_calls_go_on_beside_a_bulk_one_on_a_slow_way() -> None:
    async def story(place: Place) -> None:
        place.network.way(*place.ids).bandwidth = 2e6
        bulk = asyncio.create_task(fate(place, 0, 1, bytes(2 << 20), 30))
        await asyncio.sleep(0.1)
        for _ in range(3):
            assert await fate(place, 0, 1, b"small", 1.0) == "answered"
            assert not bulk.done()
        assert await bulk == "answered"

    assert swarm(story).lost == []


def test_a_reader_that_is_slower_than_silence_is_not_lost() -> None:
    async def story(place: Place) -> None:
        place.network.way(*place.ids).bandwidth = 1e4
        assert await fate(place, 0, 1, bytes(1 << 20), 300) == "answered"

    assert swarm(story).lost == []


@pytest.mark.parametrize("seed", range(10))
def test_dials_that_show_up_twice_do_no_harm(seed: int) -> None:
    async def story(place: Place) -> None:
        place.network.way(*place.ids).doubled = 1.0
        for _ in range(30):
            assert await fate(place, 0, 1, b"?", 1) == "answered"
            assert await fate(place, 1, 0, b"?", 1) == "answered"
            await asyncio.sleep(1)
        assert [peer.connections for peer in place.peers] == [1, 1]

    assert swarm(story, seed=seed).lost == []


def test_a_call_that_is_cancelled_ends_its_handler() -> None:
    ended: list[str] = []

    async def story(place: Place) -> None:
        async def handler(peer: Peer, body: bytes) -> bytes:
            try:
                await asyncio.sleep(100)
            finally:
                ended.append("cancelled")
            return b""

        place.peers[1].serve(handler)
        call = asyncio.create_task(place.peers[0].call(place.ids[1], b"", timeout=50))
        await asyncio.sleep(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.sleep(1)
        assert ended == ["cancelled"]
        assert await fate(place, 0, 1, b"", 2) == "TimedOut: the peer has not answered in time"
        await asyncio.sleep(1)
        assert ended == ["cancelled"] * 2

    swarm(story)


def test_a_handler_that_has_not_begun_is_closed_when_its_call_is_cancelled() -> None:
    begun, closed = list[bytes](), list[bool]()

    async def story(place: Place) -> None:
        async def later(body: bytes) -> bytes:
            begun.append(body)
            return body

        def handler(peer: Peer, body: bytes) -> Coroutine[Any, Any, bytes]:
            answer = later(body)
            asyncio.get_running_loop().call_soon(cancel, answer)
            return answer

        def cancel(answer: Coroutine[Any, Any, bytes]) -> None:
            for task in asyncio.all_tasks():
                if "Link._answer" in repr(task):
                    task.cancel()
            asyncio.get_running_loop().call_later(
                0.5, lambda: closed.append(inspect.getcoroutinestate(answer) == "CORO_CLOSED")
            )

        place.peers[1].serve(handler)
        assert await fate(place, 0, 1, b"", 2) == "TimedOut: the peer has not answered in time"

    swarm(story)
    assert (begun, closed) == ([], [True])


def test_what_a_handler_raises_is_told_in_our_words() -> None:
    async def story(place: Place) -> None:
        async def handler(peer: Peer, body: bytes) -> bytes:
            raise {b"a": Refused(Reason.LEAVING, "going"), b"b": StoreError("no disk")}[body]

        assert await fate(place, 0, 1, b"a", 5) == "answered"
        place.peers[1].serve(handler)
        assert await fate(place, 0, 1, b"a", 5) == "Refused: going"
        assert await fate(place, 0, 1, b"b", 5) == "Refused: no disk"
        words = "unexpected error while serving a peer; the log of the serving peer shows it"
        assert await fate(place, 0, 1, b"secret", 5) == f"Refused: {words}"
        assert [complaint["message"] for complaint in place.complaints] == [words]
        place.complaints.clear()
        place.peers[1]._handler = None
        assert await fate(place, 0, 1, b"", 5) == "Refused: this peer answers no calls yet"

    swarm(story)


def test_close_lets_calls_end_and_then_takes_none() -> None:
    async def story(place: Place) -> None:
        async def slow(peer: Peer, body: bytes) -> bytes:
            await asyncio.sleep(float(body))
            return body * 2

        place.peers[1].serve(slow)
        quick = asyncio.create_task(fate(place, 0, 1, b"2", 60))
        endless = asyncio.create_task(fate(place, 0, 1, b"50", 60))
        await asyncio.sleep(1)
        await place.peers[1].close()
        assert asyncio.get_running_loop().time() == pytest.approx(1 + LIMITS.drain_within)
        assert await quick == "answered"
        assert (await endless).startswith("Broken")
        assert (await fate(place, 0, 1, b"0", 5)).startswith("Unreachable")
        with pytest.raises(UsageError, match="transport is closed"):
            await place.peers[1].call(place.ids[0], b"", timeout=1)

    swarm(story)


def test_close_while_dialling_ends_the_call() -> None:
    async def story(place: Place) -> None:
        place.network.way(*place.ids).dials = False
        waiting = asyncio.create_task(fate(place, 0, 1, b"?", 60))
        await asyncio.sleep(1)
        await place.peers[0].close()
        assert await waiting == "Unreachable: this transport was closed; nothing was sent"

    swarm(story)


def test_a_peer_does_not_call_itself() -> None:
    async def story(place: Place) -> None:
        with pytest.raises(UsageError, match="call the handler"):
            await place.peers[0].call(place.ids[0], b"", timeout=1)
        assert repr(place.peers[0]) == "<StreamTransport of 01010101: 0 connections>"

    swarm(story)


def test_one_connection_too_many_takes_the_place_of_an_idle_one_or_is_refused() -> None:
    async def story(place: Place) -> None:
        async def slow(peer: Peer, body: bytes) -> bytes:
            await asyncio.sleep(float(body))
            return body * 2

        for peer in place.peers:
            peer.serve(slow)
        for number in (1, 2, 3):
            assert await fate(place, number, 0, b"0", 5) == "answered"
            await asyncio.sleep(1)
        assert place.peers[0].connections == 2
        busy = [asyncio.create_task(fate(place, number, 0, b"3", 9)) for number in (2, 3)]
        await asyncio.sleep(1)
        refused = "Refused: 2 connections, or 4 of one peer, are open already; try again later"
        assert await fate(place, 1, 0, b"0", 5) == refused
        assert await fate(place, 0, 1, b"0", 5) == refused
        assert [await task for task in busy] == ["answered"] * 2
        assert await fate(place, 1, 0, b"0", 5) == "answered"

    swarm(story, count=4, limits=TransportLimits(connection=QUICK, connections=2))


def test_what_comes_with_the_hello_of_one_connection_too_many_is_not_served() -> None:
    async def story(place: Place) -> None:
        served = list[bytes]()

        async def slow(peer: Peer, body: bytes) -> bytes:
            await asyncio.sleep(3)
            return b""

        def answer(peer: Peer, body: bytes) -> Coroutine[Any, Any, bytes]:
            served.append(body)
            return slow(peer, body)

        place.peers[0].serve(answer)
        asked = [b"one", b"two", b"three"]
        streams = []
        for number, body in enumerate(asked):
            stream = await place.network.node(peer_id(90 + number)).dial(place.ids[0])
            sealer = Sealer(number)
            await stream.write([sealer.hello + joined(sealer.seal(Kind.REQUEST, 1, body))])
            await asyncio.sleep(0.5)
            streams.append(stream)
        assert served == asked[:2]
        for stream in streams:
            stream.abort()

    swarm(story, limits=TransportLimits(connection=QUICK, connections=2))


def test_a_flood_of_streams_is_bounded() -> None:
    async def story(place: Place) -> None:
        node = place.network.node(peer_id(99))
        streams = [await node.dial(place.ids[0]) for _ in range(100)]
        most = place.peers[0].connections
        assert most <= 2 * LIMITS.connections
        await asyncio.sleep(0.5)
        assert await fate(place, 1, 0, b"?", 5) == "answered"
        await asyncio.sleep(LIMITS.linger)
        assert place.peers[0].connections <= LIMITS.per_peer + 1
        await asyncio.sleep(QUICK.silent_after + 3)
        assert place.peers[0].connections == 1
        for stream in streams:
            stream.abort()

    swarm(story)


def test_the_same_seed_gives_the_same_run() -> None:
    async def story(place: Place) -> None:
        for ends in (place.ids, place.ids[::-1]):
            place.network.way(*ends).latency = (0.01, 0.3)
        for _ in range(5):
            fates = [fate(place, side, 1 - side, bytes(500_000), 5) for side in (0, 1)]
            await asyncio.gather(*fates)

    one, same, other = (swarm(story, seed=seed).trace for seed in (1, 1, 2))
    assert one == same
    assert one != other


def test_it_runs_on_a_real_loop_too() -> None:
    async def main() -> bytes:
        place = Place(0)
        place.network.way(*place.ids).latency = (0.0, 0.01)
        answer = await place.peers[0].call(place.ids[1], bytes(1 << 20), timeout=10)
        for peer in place.peers:
            await peer.close()
        return answer

    assert asyncio.run(main()) == run(main()) == bytes(2 << 20)


class Mute:
    """A stream that takes what is written until it breaks, and of which nothing ever comes."""

    def __init__(self) -> None:
        self.broken = False
        self.written = 0
        self._ended = asyncio.Event()

    room = True

    async def read(self) -> bytes:
        await self._ended.wait()
        return b""

    def deliver(self, to: Callable[[bytes], None]) -> None:
        pass

    async def write(self, pieces: Sequence[Buffer]) -> None:
        self.put(pieces)

    def put(self, pieces: Sequence[Buffer]) -> None:
        if self.broken:
            raise ConnectionResetError("it broke")
        self.written += sum(map(len, pieces))

    def close(self) -> None:
        self._ended.set()

    abort = close


class MuteStreams:
    """Streams of which each is that one."""

    me = peer_id(1)

    def __init__(self) -> None:
        self.stream = Mute()

    async def dial(self, peer: Peer) -> Mute:
        return self.stream

    def listen(self, accept: object) -> None:
        pass

    def stop(self) -> None:
        pass


def test_what_breaks_while_it_is_sent_at_once_ends_the_connection_soon() -> None:
    async def main() -> None:
        streams, loop = MuteStreams(), asyncio.get_running_loop()
        transport = StreamTransport(streams, LIMITS)
        first = asyncio.create_task(transport.call(peer_id(2), b"?", timeout=60))
        await asyncio.sleep(0.1)
        assert streams.stream.written
        assert not first.done()
        streams.stream.broken = True
        began = loop.time()
        with pytest.raises(Broken, match="it broke"):
            await transport.call(peer_id(2), b"?", timeout=60)
        with pytest.raises(Broken, match="it broke"):
            await first
        assert loop.time() - began <= LIMITS.linger + 0.1
        await transport.close()

    run(main())


def test_a_short_answer_that_is_at_hand_takes_no_task() -> None:
    async def story(place: Place) -> None:
        tasks: list[int] = []

        def at_hand(peer: Peer, body: bytes) -> bytes:
            tasks.append(len(asyncio.all_tasks()))
            if body == b"!":
                raise StoreError("not here")
            return body * 2

        place.peers[1].serve(at_hand)
        assert await fate(place, 0, 1, b"?", 5) == "answered"
        before = len(asyncio.all_tasks())
        told: list[object] = []
        for body in (b"?", b"!"):
            drop = place.peers[0].ask(place.ids[1], body, timeout=5, told=told.append)
            assert drop is not None
        await asyncio.sleep(0.1)
        assert told[0] == b"??"
        assert str(told[1]) == "not here"
        assert tasks[1:] == [before, before]
        gone = place.peers[0].ask(place.ids[1], b"?", timeout=5, told=told.append)
        assert gone is not None
        gone()
        await asyncio.sleep(0.1)
        assert len(told) == 2
        with pytest.raises(UsageError, match="cannot call itself"):
            place.peers[0].ask(place.ids[0], b"?", timeout=5, told=told.append)
        assert place.peers[0].ask(peer_id(9), b"?", timeout=5, told=told.append) is None

    swarm(story)
