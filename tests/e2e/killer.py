"""Kills those who answer prompts, or hold what is asked for, while an answer is on its way.

A storage peer is killed only while all others are well, and a compute peer only while another one
is: so there is always a quorum, and somebody to go on. Each comes back a moment later.
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
from giaann_p2p.local.peer import State, View
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.said import Generation
from giaann_p2p.swarm.identity import name_of

_AWAY = 1.0
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
        """When somebody was killed who had to do with it, and in which role."""

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

    def works(self) -> str:
        """Return who works at it, as far as the client knows."""
        return name_of(self.answer.peers[-1]) if self.answer.peers else ""

    def pauses(self) -> list[tuple[str, float]]:
        """Return, for each who was killed, the longest pause from then on, up to the next one."""
        found, begins = list[tuple[str, float]](), [*self.struck, inf]
        for began, end in pairwise(begins):
            gaps = (b - a for a, b in pairwise(self.times) if b > began and a < end)
            found.append((self.struck[began], max(gaps)))
        return found

    def undisturbed(self) -> float:
        """Return the longest pause of an answer."""
        return max(b - a for a, b in pairwise(self.times))


class Killer:
    """See the module. All that is done is written down in `story`."""

    def __init__(self, swarm: LocalSwarm, seed: int) -> None:
        self.story: list[str] = []
        self.followed: list[Followed] = []
        self.kills = defaultdict[str, int](int)
        self._swarm, self._chance = swarm, random.Random(seed)
        self._well = {peer.name: peer for peer in swarm.peers() if peer.role != "bootstrap"}
        self._all = {role: len(self._of(role)) for role in ("storage", "compute")}
        self._returning: set[asyncio.Task[None]] = set()
        self._began = time.monotonic()

    def follow(self, answer: SwarmAnswer) -> Followed:
        """Follow an answer: it is noted down when somebody is killed who has to do with it."""
        self.followed.append(Followed(answer))
        return self.followed[-1]

    async def may_strike(self, role: str) -> None:
        """Return when one of a role can be done without."""
        while len(self._of(role)) < (self._all[role] if role == "storage" else 2):
            await asyncio.wait(self._returning, return_when=asyncio.FIRST_COMPLETED)
            await self._returned()

    async def healed(self) -> None:
        """Return when all are well."""
        if self._returning:
            await asyncio.wait(self._returning)
        await self._returned()

    def strike(self, role: str, followed: Followed) -> None:
        """Kill who works at an answer, or any storage peer, at once; let it come back later."""
        peers = self._of(role)
        if role == "compute":
            peers = [peer for peer in peers if peer.peer == followed.works()]
        if not peers or followed.over:
            return
        peer = self._chance.choice(sorted(peers, key=lambda peer: peer.name))
        del self._well[peer.name]
        # Not by its supervisor: to ask for that takes longer than many an answer.
        os.killpg(peer.pid, signal.SIGKILL)
        now = time.monotonic()
        self.kills[role] += 1
        hit = [one for one in self.followed if not one.over]
        for one in hit:
            if role == "storage" or one.works() == peer.peer:
                one.struck[now] = role
        tokens = len(followed.answer.tokens)
        self._tell(f"kill {peer.name} at token {tokens} of {followed.answer.prompt!r}")
        self._returning.add(asyncio.create_task(self._return(peer, self._chance.uniform(0, _AWAY))))

    def figures(self) -> str:
        """Return how many kills hit, and how long the pauses were."""
        lines = []
        for role in ("compute", "storage"):
            hits = [one for one in self.followed if role in one.struck.values()]
            found = [pause for one in hits for what, pause in one.pauses() if what == role]
            lines.append(
                f"{self.kills[role]} {role} peers killed, {len(found)} times an answer in the"
                f" making was hit: {_range(found)} between two tokens around it"
            )
        calm = [one.undisturbed() for one in self.followed if not one.struck]
        lines.append(f"{len(calm)} answers that nobody disturbed: {_range(calm)}")
        return "\n".join(lines)

    def _of(self, role: str) -> list[View]:
        return [peer for peer in self._well.values() if peer.role == role]

    async def _return(self, peer: View, away: float) -> None:
        await asyncio.to_thread(self._swarm.wait_ended, peer.name)
        await asyncio.sleep(away)
        await asyncio.to_thread(self._swarm.restart, peer.name)
        self._tell(f"{peer.name} begins again")
        until = time.monotonic() + _WELL_WITHIN
        while (found := await asyncio.to_thread(self._swarm.peer, peer.name)).state != State.READY:
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
