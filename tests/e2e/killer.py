"""Kills those who answer prompts, or hold what is asked for, while an answer is on its way.

Who answers is killed only while another compute peer is well, and storage peers, one or two of
three, only while all are: that much a swarm promises to stand. Each comes back a moment later.
"""

import asyncio
import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from math import inf
from statistics import median

from giaann_p2p.client.prompting import SwarmAnswer
from giaann_p2p.local.peer import ProcessState, View
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.said import Generation
from giaann_p2p.swarm.wire.identity import name_of

WAYS = {
    "who answers": ("compute",),
    "who holds the rows": ("storage",),
    "both": ("compute", "storage"),
}
_MOST_STORAGES = 2
_FEWEST_COMPUTES = 2
_AWAY = 0.5
_LOOK_EVERY = 0.1
_WELL_WITHIN = 120.0
Strike = Callable[["Followed"], None]


class Followed:
    """An answer, and when each of its tokens came."""

    def __init__(self, answer: SwarmAnswer) -> None:
        self.answer = answer
        self.times = [time.monotonic()]
        """When it was asked for, when each token came, when it was known to be whole."""
        self.struck: dict[float, str] = {}
        """When it lost somebody, and in which way."""

    async def all(self, at: int, strike: Strike) -> Generation:
        """Return the whole answer; strike while it waits for what comes after so many tokens."""
        loop = asyncio.get_running_loop()
        if at == 0:
            loop.call_soon(strike, self)
        async for _ in self.answer:
            self.times.append(time.monotonic())
            if len(self.answer.tokens) == at:
                loop.call_soon(strike, self)
        self.times.append(time.monotonic())
        return await self.answer.all()

    @property
    def over(self) -> bool:
        """Whether all of it is here."""
        return self.answer.stopped is not None

    @property
    def peer(self) -> str:
        """Who answers, as far as the client knows."""
        return name_of(self.answer.peers[-1]) if self.answer.peers else ""

    @property
    def longest(self) -> float:
        """The longest pause there was."""
        return max(b - a for a, b in pairwise(self.times))

    def pauses(self, way: str) -> list[float]:
        """Return the longest pause after each loss, up to the next one."""
        return [
            max(b - a for a, b in pairwise(self.times) if b > began and a < end)
            for began, end in pairwise([*self.struck, inf])
            if self.struck[began] == way
        ]


class Killer:
    """See the module. All that is done is written down in `story`."""

    def __init__(self, swarm: LocalSwarm, seed: int) -> None:
        self.story: list[str] = []
        self.followed: list[Followed] = []
        self.strikes = defaultdict[str, int](int)
        """How many there were of each way."""
        self._swarm, self._chance = swarm, random.Random(seed)
        self._well = {peer.name: peer for peer in swarm.peers()}
        self._storages = len(self._of("storage"))
        self._returning: set[asyncio.Task[None]] = set()
        self._began = time.monotonic()

    def follow(self, answer: SwarmAnswer) -> Followed:
        """Follow an answer: what it loses is noted down."""
        self.followed.append(Followed(answer))
        return self.followed[-1]

    async def may_strike(self, way: str) -> None:
        """Return when those can be done without that are to be killed."""
        fewest = {"storage": self._storages, "compute": _FEWEST_COMPUTES}
        while any(len(self._of(role)) < fewest[role] for role in WAYS[way]):
            await asyncio.wait(self._returning, return_when=asyncio.FIRST_COMPLETED)
            await self._returned()

    async def healed(self) -> None:
        """Return when all are well."""
        if self._returning:
            await asyncio.wait(self._returning)
        await self._returned()

    def strike(self, way: str, followed: Followed) -> None:
        """Kill at once, unless an answer is here already; let them come back later."""
        chosen = [peer for peer in self._of("compute") if peer.peer == followed.peer]
        if followed.over or not chosen:
            return
        if "compute" not in WAYS[way]:
            chosen = []
        if "storage" in WAYS[way]:
            count = self._chance.randint(1, _MOST_STORAGES)
            chosen += self._chance.sample(self._of("storage"), count)
        for peer in chosen:
            del self._well[peer.name]
            # Not by its supervisor: to ask for that takes longer than many an answer.
            os.killpg(peer.pid, signal.SIGKILL)
            returning = self._return(peer, self._chance.uniform(0, _AWAY))
            self._returning.add(asyncio.create_task(returning))
        names, tokens = [peer.name for peer in chosen], len(followed.answer.tokens)
        self._tell(f"kill {' and '.join(names)} at token {tokens} of {followed.answer.prompt!r}")
        self.strikes[way] += 1
        for one in self.followed:
            if not one.over and (one.peer == followed.peer or "storage" in WAYS[way]):
                one.struck[time.monotonic()] = way

    def figures(self) -> str:
        """Return how many kills hit, and how long the pauses were."""
        lines = []
        for way, count in self.strikes.items():
            found = [pause for one in self.followed for pause in one.pauses(way)]
            lines.append(
                f"{count} times {way} was killed, which hit {len(found)} answers in the making:"
                f" {_range(found)} between two tokens"
            )
        calm = [one.longest for one in self.followed if not one.struck]
        lines.append(f"{len(calm)} answers that nothing hit: {_range(calm)}")
        return "\n".join(lines)

    def _of(self, role: str) -> list[View]:
        """Return those that are well, in an order of their own."""
        return [peer for _, peer in sorted(self._well.items()) if peer.role == role]

    async def _return(self, peer: View, away: float) -> None:
        await asyncio.to_thread(self._swarm.wait_ended, peer.name)
        await asyncio.sleep(away)
        await asyncio.to_thread(self._swarm.restart, peer.name)
        self._tell(f"{peer.name} begins again")
        until = time.monotonic() + _WELL_WITHIN
        while (
            found := await asyncio.to_thread(self._swarm.peer, peer.name)
        ).state != ProcessState.READY:
            assert found.code is None, f"{peer.name} has ended with {found.code}"
            assert time.monotonic() < until, f"{peer.name} is {found.state}, and stays so"
            await asyncio.sleep(_LOOK_EVERY)
        self._well[peer.name] = found
        self._tell(f"{peer.name} is well")

    async def _returned(self) -> None:
        """Raise what went wrong with those who came back."""
        for task in [task for task in self._returning if task.done()]:
            self._returning.discard(task)
            await task

    def _tell(self, what: str) -> None:
        self.story.append(f"{time.monotonic() - self._began:6.2f} {what}")


def _range(seconds: list[float]) -> str:
    if not seconds:
        return "none"
    return f"median {median(seconds):.3f} s, worst {max(seconds):.3f} s"
