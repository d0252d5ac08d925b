"""Connections where not everybody is served: greetings, and what a stranger is held to."""

import asyncio
from collections.abc import Awaitable

import pytest

from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import Broken, Reason, Refused
from giaann_p2p.net.frames import Sealer
from giaann_p2p.net.limits import Limits, TransportLimits
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.swarm.wire.identity import Peer
from tests.unit.net.helpers_swarm import Place, peer_id, swarm

STRANGER_WITHIN = 10.0
LIMITS = TransportLimits(
    connection=Limits(stranger_longest=100, stranger_calls=2, stranger_within=STRANGER_WITHIN),
    connections=4,
)


def door(peer: Peer, greeting: bytes) -> str:
    return "" if greeting == b"let me in " + peer[:1] else "you have no token"


def guarded(place: Place, *numbers: int) -> None:
    """Have a guest of each number come to peer 0, those above 9 without a token."""
    place.peers[0].guard(door)
    for number in numbers:
        me = peer_id(number)
        shown = b"let me in " + me[:1] if number < 10 else b""
        node = place.network.node(me)
        guest = StreamTransport(node, LIMITS, lambda: place.chance.getrandbits(64), greeting=shown)
        place.peers.append(guest)
        place.ids.append(me)


async def ends(call: Awaitable[bytes]) -> bytes | PeerError:
    try:
        return await call
    except PeerError as error:
        return error


def test_what_a_peer_has_shown_is_known_while_it_is_connected() -> None:
    async def story(place: Place) -> None:
        guarded(place, 2, 10)
        for guest in place.peers[1:]:
            assert place.peers[0].greeting_of(guest.me) == b""
            assert await guest.call(place.ids[0], b"?", timeout=5) == b"??"
        assert place.peers[0].greeting_of(peer_id(2)) == b"let me in \x02"
        assert place.peers[0].greeting_of(peer_id(10)) == b""
        await place.peers[1].close()
        await asyncio.sleep(1)
        assert place.peers[0].greeting_of(peer_id(2)) == b""

    swarm(story, count=1, limits=LIMITS)


def test_a_stranger_asks_little_and_has_to_go_and_a_member_stays() -> None:
    async def story(place: Place) -> None:
        guarded(place, 2, 10)
        _, member, stranger = place.peers
        long = bytes(101)
        assert await member.call(place.ids[0], long, timeout=5) == long * 2
        assert await stranger.call(place.ids[0], b"?", timeout=5) == b"??"
        for question in (long, bytes(1 << 20), bytes(51)):  # the last one's answer is too long
            refusal = await ends(stranger.call(place.ids[0], question, timeout=5))
            assert isinstance(refusal, Refused)
            assert refusal.reason is Reason.TOO_LONG
        await asyncio.sleep(STRANGER_WITHIN + 1)
        assert place.peers[0].connections == 1
        assert await member.call(place.ids[0], b"?", timeout=5) == b"??"

    swarm(story, count=1, limits=LIMITS)


def test_strangers_make_place_for_members_and_never_take_theirs() -> None:
    async def story(place: Place) -> None:
        guarded(place, *range(10, 16), *range(2, 6), *range(16, 20))
        for guest in place.peers[1:]:
            await ends(guest.call(place.ids[0], b"?", timeout=1))
        await asyncio.sleep(3)
        for number in range(2, 6):
            assert place.peers[0].greeting_of(peer_id(number))
        for number in range(10, 20):
            assert place.peers[0]._links.get(peer_id(number)) is None

    swarm(story, count=1, limits=LIMITS)


def test_who_becomes_a_stranger_is_told_so_and_has_to_go() -> None:
    async def story(place: Place) -> None:
        guarded(place, 2, 3)
        first, second, third = place.peers
        waits = asyncio.Event()

        async def slow(peer: Peer, body: bytes) -> bytes:
            await waits.wait()
            return body

        first.serve(slow)
        calls = [
            asyncio.create_task(ends(one.call(first.me, b"?", timeout=5)))
            for one in (second, third)
        ]
        await asyncio.sleep(1)
        first.guard(lambda peer, greeting: "revoked" if peer == second.me else "")
        waits.set()
        gone, stays = await asyncio.gather(*calls)
        assert isinstance(gone, Refused | Broken)
        assert "revoked" in str(gone)
        assert stays == b"?"
        await asyncio.sleep(2)
        assert first.connections == 1

    swarm(story, count=1, limits=LIMITS)


def test_who_gives_its_place_not_back_keeps_nobody_out_and_has_to_go() -> None:
    """Peers that answer no goodbye."""

    async def story(place: Place) -> None:
        kept, sealers = [], [Sealer(number) for number in range(LIMITS.connections)]
        for number, sealer in enumerate(sealers):
            stream = await place.network.node(peer_id(20 + number)).dial(place.ids[0])
            await stream.write([sealer.hello])
            kept.append(stream)
        await asyncio.sleep(1)
        for number in range(2, 9):
            assert await _asked(place, number) == b"??"
            assert place.peers[0].connections <= 2 * LIMITS.connections
        await asyncio.sleep(LIMITS.connection.silent_after + 2)
        assert place.peers[0].connections <= LIMITS.connections
        for stream in kept:
            stream.abort()

    swarm(story, count=1, limits=LIMITS)


async def _asked(place: Place, number: int) -> bytes:
    draw = place.chance.getrandbits
    guest = StreamTransport(place.network.node(peer_id(number)), LIMITS, lambda: draw(64))
    place.peers.append(guest)
    return await guest.call(place.ids[0], b"?", timeout=5)


def test_who_says_no_hello_has_to_go() -> None:
    async def story(place: Place) -> None:
        mute = place.network.node(peer_id(9))
        stream = await mute.dial(place.ids[0])
        await asyncio.sleep(1)
        assert place.peers[0].connections == 1
        await asyncio.sleep(LIMITS.connection.greeting_within + 2)
        assert place.peers[0].connections == 0
        stream.abort()

    swarm(story, count=1, limits=LIMITS)


def test_the_mute_keep_nobody_out() -> None:
    async def story(place: Place) -> None:
        mutes = [await place.network.node(peer_id(20 + n)).dial(place.ids[0]) for n in range(12)]
        await asyncio.sleep(0.1)
        assert place.peers[0].connections == 2 * LIMITS.connections
        guarded(place, 2)
        assert await place.peers[1].call(place.ids[0], b"?", timeout=5) == b"??"
        for stream in mutes:
            stream.abort()

    swarm(story, count=1, limits=LIMITS)


@pytest.mark.parametrize("size", [0, 1024])
def test_greetings_of_any_length_arrive(size: int) -> None:
    async def story(place: Place) -> None:
        shown = bytes(size)
        guest = StreamTransport(place.network.node(peer_id(7)), LIMITS, greeting=shown)
        place.peers.append(guest)
        assert await guest.call(place.ids[0], b"?", timeout=5) == b"??"
        assert place.peers[0].greeting_of(guest.me) == shown

    swarm(story, count=1, limits=LIMITS)
