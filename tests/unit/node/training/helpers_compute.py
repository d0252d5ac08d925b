"""Compute peers of a town, which really parse and learn, and somebody who has texts learned."""

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import cast

from giaann_p2p.client.session import Session
from giaann_p2p.client.training import Trainer
from giaann_p2p.model.digest import digest
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import Answer, Neuron
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.joined_host import JoinedHost
from giaann_p2p.node.members.member import Member
from giaann_p2p.node.members.standing_file import StandingFile
from giaann_p2p.node.reading.prompting import Prompting
from giaann_p2p.node.training.compute import Answering, ComputeNode
from giaann_p2p.node.training.learn_workers import ThreadWorker
from giaann_p2p.node.training.learner import Made, Task, teach
from giaann_p2p.node.training.pool import Pool
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.solo.brain import Brain
from giaann_p2p.swarm.reading.known_rows import Known
from giaann_p2p.swarm.reading.row_vote import USUAL
from giaann_p2p.swarm.wire.identity import Peer
from tests.helpers import no_nouns
from tests.unit.node.helpers import EPOCH, MANIFEST, Town, identity

NOUNS = ("bee", "wasp", "flower", "hive", "summer", "poet", "garden", "honey", "war", "spring")
FATAL = "zorp"
"""Who learns a sentence with this word does not live to tell."""


def written(sentences: int, seed: int = 0) -> str:
    """Return a text that nobody wrote, a sentence a line; some of them are too short."""
    chance = random.Random(seed)
    lines = []
    for number in range(sentences):
        some = chance.sample(NOUNS, 3)
        lines.append(
            "Go."
            if number % 50 == 7
            else f"The {some[0]} of {number % 9} makes {some[1]} from the {some[2]} in a year."
        )
    return "\n".join(lines)


@cache
def alone(text: str, epochs: int = 1) -> int:
    """Return the digest of what one machine learns from a text."""
    brain = Brain(SPEC)
    brain.train(text, epochs=epochs, workers=1)
    return digest(brain.knowledge)


class Slow:
    """Learns for real; it takes a while, in made-up time."""

    def __init__(self, chance: random.Random, seconds: float) -> None:
        self.pool = Pool([ThreadWorker()], teach(SPEC, "cpu"))
        self.learned: list[Task] = []
        self._chance, self._seconds = chance, seconds

    async def learn(self, task: Task) -> Made | str:
        """Return what came of a chunk, or why nothing did."""
        await asyncio.sleep(self._chance.uniform(0, self._seconds))
        self.learned.append(task)
        if any(FATAL in text for text in task.sentences):
            return "the process that parsed it died of signal 9"
        return await self.pool.learn(task)


def no_prompts() -> Prompting:
    """Return what answers prompts, with no rows to answer them from."""

    async def nothing(neurons: Sequence[Neuron], known: Known) -> Answer:
        return [None for _ in neurons]

    return Prompting(nothing, profile_of(SPEC), frequent=no_nouns)


class Workshop:
    """One compute peer, which can die and come back."""

    def __init__(
        self, town: Town, number: int, seconds: float = 1.0, answering: Answering | None = None
    ) -> None:
        self.town, self.number = town, number
        self.identity = identity(number)
        self.me = self.identity.peer
        self.answering = answering
        self.seconds = seconds
        self.standing_file: StandingFile | None = None
        town.others.append(self.me)
        self.error: BaseException | None = None
        self.begin()

    def begin(self) -> None:
        """Come up."""
        loop = asyncio.get_running_loop()
        self.transport = self.town.transport(self.me)
        self.slow = Slow(random.Random(self.number), self.seconds)
        clock = Clock(lambda: EPOCH + loop.time(), loop.time)
        context = Context(
            identity=self.identity,
            manifest=MANIFEST,
            transport=self.transport,
            board=self.town.board.view(self.me),
            gate=Gate(MANIFEST, self.transport, clock=clock),
            clock=clock,
            addresses=lambda: [f"/ip4/10.0.1.{self.number}/tcp/4100/p2p/x"],
            options=self.town.options,
            incarnation=self.town.chance.getrandbits(63),
            log=logging.getLogger(f"giaann.compute.{self.number}"),
        )
        self.node = ComputeNode(
            context, self.slow, slots=2, device="cpu", standing_file=self.standing_file
        )
        self.node.answering = self.answering
        self.task = loop.create_task(self._live())

    async def _live(self) -> None:
        try:
            await self.node.run()
        except Exception as error:  # noqa: BLE001  (the test asks for it)
            self.error = error

    async def end(self) -> None:
        """Go, in good order."""
        await self.node.close()
        await self.gone()

    async def gone(self) -> None:
        """Wait until it has left, and close what it leaves."""
        await self.task
        await self.transport.close()
        await self.slow.pool.close()

    async def die(self) -> None:
        """Be gone at once, without a word to anybody; connections break."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.town.network.stop(self.me)
        for other in self.town.peers:
            self.town.network.reset(self.me, other)
        await self.transport.close()


class Visitor:
    """Somebody who has texts learned."""

    def __init__(self, town: Town, number: int = 220, verify: float = USUAL) -> None:
        self.town, self.me = town, identity(number).peer
        town.others.append(self.me)
        loop = asyncio.get_running_loop()
        clock = Clock(lambda: EPOCH + loop.time(), loop.time)
        self.transport = town.transport(self.me)
        context = Context(
            identity=identity(number),
            manifest=MANIFEST,
            transport=self.transport,
            board=town.board.view(self.me),
            gate=Gate(MANIFEST, self.transport, clock=clock),
            clock=clock,
            options=town.options,
        )
        member = Member(context)
        place = cast(JoinedHost, SimpleNamespace(transport=self.transport))
        self.visit = Session(member, place, verify)
        self.trainer = Trainer(self.visit)
        self.task = loop.create_task(member.lookout.run())

    def workers(self) -> Mapping[Peer, int]:
        """Return the compute peers that are known here."""
        return self.visit.lookout.view.workers(self.visit.clock())

    async def close(self) -> None:
        """Go."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.trainer.close()
        await self.visit.reading.close()
        await self.transport.close()
