"""Harm done to the storage peers of a swarm, in an order that a seed decides.

Never more than two peers are harmed at the same time: that much, three replicas promise to stand.
A peer counts as harmed until it is ready again. One that leaves hands over before, and is not
missed; so it does not count, but no second one leaves before it is gone and a new one is ready.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from statistics import median

from giaann_p2p.local.peer import ProcessState
from giaann_p2p.local.swarm import LocalSwarm

_AT_ONCE = 2
_LOOK_EVERY = 0.1
_HEALED_WITHIN = 180.0
_P2PD_BACK = 2.0
"""Seconds in which others find a p2pd again."""
Way = Callable[[str, float], Awaitable[None]]


class Havoc:
    """See the module. All that is done is written down in `story`."""

    def __init__(
        self,
        swarm: LocalSwarm,
        seed: int,
        pause: float = 2.0,
        away: float = 6.0,
        spare: Sequence[str] = (),
        drains: bool = True,
    ) -> None:
        """`spare`: those that nothing is done to. `drains`: whether any is to hand over and go."""
        self.story: list[str] = []
        self.counts = Counter[str]()
        self._took = defaultdict[str, list[float]](list)
        self._swarm, self._chance = swarm, random.Random(seed)
        self._pause, self._away = pause, away
        storing = {peer.name for peer in swarm.peers() if peer.role == "storage"}
        self._healthy, self._spared = sorted(storing - set(spare)), len(set(spare))
        self._harmed: dict[asyncio.Task[None], Way] = {}
        self._ways_of: dict[Way, str] = {
            self._kill: "kill",
            self._stop: "stop",
            self._drain: "drain",
            self._kill_p2pd: "p2pd",
        }
        if not drains:
            del self._ways_of[self._drain]
        self._ways: list[Way] = []
        self._began = time.monotonic()

    def __str__(self) -> str:
        of = [
            f"{kind} {count} (well after {median(self._took[kind]):.1f} s,"
            f" at most {max(self._took[kind]):.1f} s)"
            for kind, count in sorted(self.counts.items())
        ]
        return ", ".join(of)

    async def run(self, seconds: float) -> None:
        """Do harm for so long, and of each kind; return when all are well again."""
        until = time.monotonic() + seconds
        async with asyncio.TaskGroup() as group:
            while time.monotonic() < until or len(self.counts) < len(self._ways_of):
                way, away = self._next_way(), self._chance.uniform(0, self._away)
                name = self._chance.choice(self._healthy)
                while self._crowded(way):
                    await asyncio.wait(self._harmed, return_when=asyncio.FIRST_COMPLETED)
                task = group.create_task(self._heal(way, name, away))
                self._healthy.remove(name)
                self._harmed[task] = way
                task.add_done_callback(self._harmed.pop)
                await asyncio.sleep(self._chance.uniform(0, 2 * self._pause))

    @property
    def peers(self) -> int:
        """How many storage peers there are."""
        return len(self._healthy) + len(self._harmed) + self._spared

    def _next_way(self) -> Way:
        """Return one way after the other, in a new order each time that all had their turn."""
        if not self._ways:
            self._ways = list(self._ways_of)
            self._chance.shuffle(self._ways)
        way = self._ways.pop()
        return self._next_way() if way == self._drain and self._crowded(way) else way

    def _crowded(self, way: Way) -> bool:
        """Tell whether no more may be harmed in this way now."""
        drains = sum(other == self._drain for other in self._harmed.values())
        if way == self._drain:
            return drains > 0
        return len(self._harmed) - drains >= _AT_ONCE

    async def _heal(self, way: Way, name: str, away: float) -> None:
        kind, began = self._ways_of[way], time.monotonic()
        self.counts[kind] += 1
        await way(name, away)
        self._took[kind].append(time.monotonic() - began)
        self._tell(f"{name} is well")

    async def _kill(self, name: str, away: float) -> None:
        self._tell(f"kill {name}")
        await asyncio.to_thread(self._swarm.kill, name)
        await asyncio.to_thread(self._swarm.wait_ended, name)
        await asyncio.sleep(away)
        self._tell(f"{name} begins again")
        await asyncio.to_thread(self._swarm.restart, name)
        await self._ready(name)

    async def _stop(self, name: str, away: float) -> None:
        self._tell(f"stop {name}")
        await asyncio.to_thread(self._swarm.stop, name)
        await asyncio.sleep(away)
        self._tell(f"{name} goes on")
        await asyncio.to_thread(self._swarm.cont, name)
        await self._ready(name)

    async def _drain(self, name: str, away: float) -> None:
        self._tell(f"drain {name}")
        await asyncio.to_thread(self._swarm.kill, name, signal.SIGTERM)
        (new,) = await asyncio.to_thread(self._swarm.add, "storage")
        self._tell(f"{new} is added")
        code = await asyncio.to_thread(self._swarm.wait_ended, name, _HEALED_WITHIN)
        assert code == 0, f"{name}, drained, ended with {code}"
        self._tell(f"{name} has left")
        await self._ready(new)

    async def _kill_p2pd(self, name: str, away: float) -> None:
        self._tell(f"p2pd {name}")
        os.kill(killed := await self._p2pd(name), signal.SIGKILL)
        await self._p2pd(name, killed)
        await asyncio.sleep(_P2PD_BACK)
        await self._ready(name)

    async def _p2pd(self, name: str, before: int = 0) -> int:
        """Return a peer's p2pd, when it has one, and another than before."""
        until = time.monotonic() + _HEALED_WITHIN
        while not (found := set(await asyncio.to_thread(self._swarm.started_by, name)) - {before}):
            code = (await asyncio.to_thread(self._swarm.peer, name)).code
            assert code is None, f"{name} has ended by itself, with {code}: see its log"
            assert time.monotonic() < until, f"{name} has not started another p2pd"
            await asyncio.sleep(_LOOK_EVERY)
        return found.pop()

    async def _ready(self, name: str) -> None:
        """Wait until a peer is as it should be, and can be harmed again."""
        until = time.monotonic() + _HEALED_WITHIN
        while True:
            peer = await asyncio.to_thread(self._swarm.peer, name)
            assert peer.code is None, f"{name} has ended with {peer.code}"
            if peer.state == ProcessState.READY:
                break
            assert time.monotonic() < until, f"{name} is {peer.state}, {peer.told}, and stays so"
            await asyncio.sleep(_LOOK_EVERY)
        self._healthy = sorted([*self._healthy, name])

    def _tell(self, what: str) -> None:
        self.story.append(f"{time.monotonic() - self._began:6.2f} {what}")
