"""Random calls among peers while all goes wrong: each ends in time, right or with an error.

A seed that fails is in the test's name; CHAOS_SEEDS=1000 runs so many.
"""

import asyncio
import os
import random

import pytest

from giaann_p2p.net.errors import Broken, Refused, TimedOut, Unreachable
from giaann_p2p.net.limits import Limits, TransportLimits
from giaann_p2p.swarm.wire.identity import Peer
from tests.unit.net.helpers import QUICK
from tests.unit.net.helpers_swarm import Place, swarm

SEEDS = int(os.environ.get("CHAOS_SEEDS", "12"))
PEERS = 4
SPAN = 120.0
TIGHT = Limits(calls=6, longest=1 << 21, bytes_in=1 << 21, bytes_out=1 << 21, window=1 << 20)
SIZES = [0, 7, 1000, 300_000, 1 << 20, (1 << 21) + 1]


class Chaos:
    """What happens to the peers of one place."""

    def __init__(self, place: Place, rng: random.Random) -> None:
        self.place = place
        self.rng = rng
        self.endings: dict[str, int] = {}
        for peer in place.peers:
            peer.serve(self.answer)

    async def answer(self, peer: Peer, body: bytes) -> bytes:
        """Answer sooner or later with what a caller can check."""
        if self.rng.random() < 0.3:
            await asyncio.sleep(self.rng.uniform(0, 6))
        return body[::-1] + peer

    async def call(self) -> None:
        """Make a call at some time; perhaps give it up."""
        rng, loop = self.rng, asyncio.get_running_loop()
        await asyncio.sleep(rng.uniform(0, SPAN))
        source, target = rng.sample(range(PEERS), 2)
        body, timeout = rng.randbytes(rng.choice(SIZES)), rng.uniform(0.1, 10)
        start = loop.time()
        try:
            async with asyncio.timeout(rng.uniform(0, 5) if rng.random() < 0.2 else None):
                answer = await self.place.peers[source].call(
                    self.place.ids[target], body, timeout=timeout
                )
            assert answer == body[::-1] + self.place.ids[source]
            ending = "answered"
        except TimeoutError:
            ending = "given up"
        except (Broken, Refused, TimedOut, Unreachable) as error:
            ending = type(error).__name__
        self.endings[ending] = self.endings.get(ending, 0) + 1
        assert loop.time() <= start + timeout + 1e-6

    async def trouble(self) -> None:
        """Let something go wrong now and then, and mend some of it."""
        rng, network = self.rng, self.place.network
        loop = asyncio.get_running_loop()
        while loop.time() < SPAN:
            await asyncio.sleep(rng.uniform(0, 6))
            ends = tuple(rng.sample(self.place.ids, 2))
            way = network.way(*ends)
            deed = rng.randrange(8)
            if deed == 0:
                network.reset(*ends)
            elif deed == 1:
                network.end(*ends)
            elif deed == 2:
                network.block(*ends, blocked=not way.blocked)
            elif deed == 3:
                way.latency = (0.0, rng.choice([0.0, 0.05, 1.0]))
            elif deed == 4:
                way.bandwidth = rng.choice([0.0, 2e4, 1e6])
            elif deed == 5:
                way.dials = not way.dials
            elif deed == 6:
                way.doubled = rng.choice([0.0, 1.0])
            else:
                others = [peer for peer in self.place.ids if peer != ends[0]]
                network.freeze(ends[0], others, frozen=rng.random() < 0.5)

    def mend(self) -> None:
        for source in self.place.ids:
            for target in self.place.ids:
                way = self.place.network.way(source, target)
                way.dials, way.bandwidth, way.doubled, way.latency = True, 0.0, 0.0, (0.0, 0.01)
                self.place.network.block(source, target, blocked=False)

    async def watch(self) -> None:
        """Check all the time that nobody holds more than it may."""
        loop = asyncio.get_running_loop()
        while loop.time() < SPAN:
            await asyncio.sleep(0.5)
            for peer in self.place.peers:
                assert peer._room_in.used <= self.place.limits.bytes_in
                assert peer._room_out.used <= self.place.limits.bytes_out
                for link in peer._all:
                    assert len(link.connection._open) <= 2 * self.place.limits.connection.calls

    async def run(self) -> None:
        calls = [self.call() for _ in range(150)]
        await asyncio.gather(self.trouble(), self.watch(), *calls)
        self.mend()
        await asyncio.sleep(40)  # what was lost unnoticed is noticed by now
        place = self.place
        for source in place.peers:
            for target in place.ids:
                if target != source.me:
                    answer = await source.call(target, b"well?", timeout=10)
                    assert answer == b"?llew" + source.me


def chaos(seed: int, limits: TransportLimits) -> tuple[list[str], dict[str, int]]:
    told: list[Chaos] = []

    async def story(place: Place) -> None:
        told.append(Chaos(place, random.Random(seed)))
        await told[0].run()

    place = swarm(story, seed=seed, count=PEERS, limits=limits)
    return place.trace, told[0].endings


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_call_ends_in_time_and_nothing_is_left(seed: int) -> None:
    limits = TransportLimits(connection=QUICK if seed % 2 else TIGHT, connections=6)
    _, endings = chaos(seed, limits)
    assert sum(endings.values()) == 150
    assert endings["answered"] > 0


def test_chaos_is_the_same_for_the_same_seed() -> None:
    limits = TransportLimits(connection=TIGHT, connections=6)
    one, same = chaos(5, limits), chaos(5, limits)
    assert one == same
    assert set(one[1]) >= {"answered", "given up", "TimedOut", "NoConnection", "Refused"}
