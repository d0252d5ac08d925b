"""Somebody who teaches a swarm a text, epoch after epoch, and reads meanwhile what it has learned.

Each epoch is a job of its own, as `giaann solo train --epochs` has it, or many are one: a long text
that says the same again and again. A row may be read from an
owner that lacks what others have taken in, so a later read may tell less than an earlier one. But
whatever is read is the sum of whole chunks that were pushed, none of them twice; and in time.
"""

import asyncio
import random
from dataclasses import dataclass, field
from typing import NamedTuple

from giaann_p2p.client.checkup import checked
from giaann_p2p.client.session import Session
from giaann_p2p.model.rows import Neuron, Row
from giaann_p2p.swarm.members.checkup import Report
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import AskDigests, Digests, decode, encode
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.e2e.material import Material, Wiki
from tests.pushing import Pusher

_EPOCH_PAUSE = 0.4
"""Between two epochs: with one and the same text, more are a flood of jobs, and no load of work."""
_READS_AN_EPOCH = 20
"""How many times shorter the pause between two reads is."""
_AT_ONCE = 8
_LOOK_EVERY = 0.5


class Took(NamedTuple):
    """When something began, by the loop's time, and how long it took."""

    began: float
    seconds: float


@dataclass
class Figures:
    """What came of it."""

    chunks: int = 0
    pushes: list[Took] = field(default_factory=list)
    reads: list[Took] = field(default_factory=list)
    behind: int = 0
    """Rows that told less than was committed when they were asked for."""

    def slowest(self, what: str) -> float:
        """Return how long the slowest took."""
        return max((took.seconds for took in getattr(self, what)), default=0.0)

    def __str__(self) -> str:
        return (
            f"{self.chunks} chunks committed, the slowest in {self.slowest('pushes'):.3f} s;"
            f" {len(self.reads)} reads, the slowest in {self.slowest('reads'):.3f} s;"
            f" {self.behind} rows were behind"
        )


class Writer:
    """See the module."""

    def __init__(
        self,
        visiting: Session,
        wiki: Wiki,
        seed: int = 0,
        epochs_a_job: int = 1,
        pause: float = _EPOCH_PAUSE,
    ) -> None:
        self.visiting, self.wiki = visiting, wiki
        self._pause = pause
        self._epochs_a_job = epochs_a_job
        self.figures = Figures()
        self.epochs = 0
        """So far, all of them whole."""
        self._pusher = Pusher.of(visiting)
        self._chance = random.Random(seed)
        self._pushed = [0] * len(wiki.deltas)
        self._committed = [0] * len(wiki.deltas)
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Write and read until it is told to end; the last epoch is whole."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.write())
            group.create_task(self._read())

    def end(self) -> None:
        """Come to an end."""
        self._over.set()

    async def learn(self, epochs: int = 1) -> None:
        """Push one epoch or more, and return when all of it is committed."""
        for _ in range(epochs):
            before, within = divmod(self.epochs, self._epochs_a_job)
            job, count = self.wiki.job(before + 1), len(self.wiki.deltas)
            async with asyncio.TaskGroup() as group:
                for number in range(count):
                    group.create_task(self._push(job, within * count + number, number))
            self.epochs += 1

    async def read(self, neurons: list[Neuron]) -> None:
        """Read rows, and see that each is what it can be."""
        known, began = list(self._committed), _now()
        rows = await self.visiting.rows(neurons)
        self.figures.reads.append(Took(began, _now() - began))
        for neuron, row in zip(neurons, rows, strict=True):
            self._check(neuron, row, known)

    async def settled(self, peers: int, within: float = 120.0) -> Report:
        """Return when all replicas agree, and hold what the twin holds."""
        return await settled(self.visiting, self.wiki, peers, within)

    async def write(self) -> None:
        """Write until it is told to end; the last epoch is whole."""
        while not self._over.is_set():
            await self.learn()
            await asyncio.sleep(self._pause)

    async def _read(self) -> None:
        known = self.wiki.telling()
        while not self._over.is_set():
            await self.read(self._chance.sample(known, _AT_ONCE))
            await asyncio.sleep(self._pause / _READS_AN_EPOCH)

    async def _push(self, job: bytes, chunk: int, number: int) -> None:
        self._pushed[number] += 1
        began = _now()
        await self._pusher.push(job, chunk, self.wiki.cut(number), self.wiki.tree(number))
        self.figures.pushes.append(Took(began, _now() - began))
        self.wiki.committed(job, chunk, number)
        self._committed[number] += 1
        self.figures.chunks += 1

    def _check(self, neuron: Neuron, row: Row | None, known: list[int]) -> None:
        times = self.wiki.times(neuron, row)
        assert times is not None, f"no sum of chunks gives {row} of {neuron}"
        assert all(n <= most for n, most in zip(times, self._pushed, strict=True)), (times, row)
        held = self.wiki.holds(neuron)
        self.figures.behind += any(times[chunk] < known[chunk] for chunk in held)


async def settled(
    visiting: Session, material: Material, peers: int, within: float = 120.0
) -> Report:
    """Return when so many peers are there, and all replicas agree and hold what the twin holds."""
    until, wanted = _now() + within, material.digest
    while True:
        there = visiting.storage_peers()
        report = await checked(visiting.place.transport, visiting.around.rules, there)
        healthy = visiting.overview().verdict == "healthy"
        whole = not (report.under or report.silent) and len(there) == peers and healthy
        if report.agrees and whole and report.digest == wanted:
            break
        assert _now() < until, f"{wanted} is to come: {len(there)} peers, {report}"
        await asyncio.sleep(_LOOK_EVERY)
    for peer in there:
        await _check_sets(visiting, material, peer)
    return report


async def _check_sets(visiting: Session, material: Material, peer: Peer) -> None:
    """See that a peer has the chunks that were committed in all its ready shards, and no others.

    What it still fetches may lack some: who is to own a shard changes until the last one has left.
    So may what it hands over: while the owners prove that they have it, it fetches nothing for it.
    """
    layout = visiting.around.rules.layout
    count = layout.shards
    sets = material.twin.sets(range(count))
    left = material.twin.shards
    while len(left):
        question = encode(AskDigests(packed(left, count)), layout.doublings)
        answer = decode(await visiting.place.transport.call(peer, question, timeout=10.0))
        assert isinstance(answer, Digests)
        for shard, digest in zip(unpacked(answer.shards, count), answer.found, strict=True):
            is_ready = ReplicaState(digest.state.decode()) is ReplicaState.READY
            assert not is_ready or digest.chunks == sets[int(shard)].digest
        assert answer.found
        left = left[len(answer.found) :]


def _now() -> float:
    return asyncio.get_running_loop().time()
