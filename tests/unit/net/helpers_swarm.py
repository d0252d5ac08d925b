"""Some peers on a network in memory, in made-up time; nothing may be left when they are gone."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from giaann_p2p.errors import PeerError
from giaann_p2p.net import clock
from giaann_p2p.net.limits import TransportLimits
from giaann_p2p.net.link import Link
from giaann_p2p.net.memory import Network
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.net.transport import Handler
from giaann_p2p.swarm.wire.identity import Peer
from tests.unit.net.helpers import QUICK

LIMITS = TransportLimits(connection=QUICK)


def peer_id(number: int) -> Peer:
    return Peer(bytes([number]) * 32)


async def double(peer: Peer, body: bytes) -> bytes:
    return body * 2


class Place:
    """Peers 1, 2, ... and the network between them."""

    def __init__(self, seed: int, count: int = 2, limits: TransportLimits = LIMITS) -> None:
        self.chance = random.Random(seed)
        self.trace: list[str] = []
        self.network = Network(self.chance, self.trace.append)
        self.lost: list[tuple[int, int, str]] = []
        self.limits = limits
        self.ids = [peer_id(number + 1) for number in range(count)]
        self.peers = [self.transport(peer) for peer in self.ids]
        self.complaints: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self.complaints.append(context))

    def transport(self, me: Peer, handler: Handler = double) -> StreamTransport:
        draw: Callable[[], int] = lambda: self.chance.getrandbits(64)  # noqa: E731
        transport = StreamTransport(self.network.node(me), self.limits, draw)
        transport.serve(handler)

        def lost(peer: Peer, error: PeerError) -> None:
            self.lost.append((me[0], peer[0], str(error)))

        transport.on_lost(lost)
        return transport

    async def close(self) -> None:
        for peer in self.peers:
            await peer.close()
        timers = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        owners = [getattr(timer._callback, "__self__", None) for timer in timers if timer._callback]
        assert not any(isinstance(owner, Link) for owner in owners)
        await asyncio.sleep(60)  # what still flies arrives
        assert [repr(peer) for peer in self.peers if peer.connections] == []
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert self.network.streams == 0
        for peer in self.peers:
            assert peer._room_in.used == peer._room_out.used == 0
            assert not peer._links
            assert not peer._dials
        assert self.complaints == []


def swarm(
    story: Callable[[Place], Awaitable[None]],
    *,
    seed: int = 0,
    count: int = 2,
    limits: TransportLimits = LIMITS,
) -> Place:
    """Run a story among some peers, and check that nothing is left of it."""

    async def main() -> Place:
        place = Place(seed, count, limits)
        await story(place)
        await place.close()
        return place

    told: Coroutine[Any, Any, Place] = main()
    return clock.run(told)
