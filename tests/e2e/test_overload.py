"""Far more is asked of a storage peer than it can do: it says so, does what it took on, recovers.

Two visitors push ten times as much as one peer takes in, while a third has a thousand readers ask
it. Each push ends in an acknowledgement or in a refusal that gives its reason; nothing waits long,
or in memory; when it is over, what was refused is taken in.

All times are printed. Those of the asker count from the call, with what its own process, and both
p2pds, need on a machine that all share; what the peer itself takes is told by its metrics, from
when it has a push. Both are held to a bound that is wide enough for a busy machine.
"""

import asyncio
import math
import re
import time
import urllib.request
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import numpy as np
import pytest

from giaann_p2p.client.session import Session, visit
from giaann_p2p.local.peer import View
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.net import errors as net
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Compare, Compared, Push, Pushed, Refusal, decode, encode
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.voucher import sealing
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import Wiki
from tests.pushing import Pusher

pytestmark = pytest.mark.e2e
ARGUMENTS = {"bootstrap": ["--quorum", "1"], "storage": ["--capacity", "1GiB"]}
JOB = b"a job, and a half"[:16]
TIMES_TOO_MUCH = 10
CALIBRATED, OVERLOADED = 3.0, 8.0
AT_ONCE, EVERY = 32, 0.02
MOST_PUSHES = 20_000
READERS, PAUSE = 1000, 0.3
MANY = 200
"""Rows that every tenth reader asks for; the others ask for one."""
NEVER = 120.0
RECOVERS_WITHIN = 30.0
AGAIN = 200
_BUCKET = re.compile(r'^giaann_push\w*_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)
LONGEST = 10.0
"""Seconds that anything asked may take to be answered; whoever pushes gives up after four."""
MOST_GROWN = 400 << 20
"""Bytes that the peer may need more than before, with all that it took in."""


@dataclass
class Outcomes:
    """What came of pushes, or of reads."""

    took: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    refused_after: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        reasons = ", ".join(f"{n:,} {why!r}" for why, n in self.refused.most_common())
        return (
            f"{len(self.took):,} done, {told(self.took)}; {self.refused.total():,} refused,"
            f" {told(self.refused_after)}: {reasons or 'none'}"
        )


def told(seconds: list[float]) -> str:
    """Return how long most of some things took, and the slowest."""
    if not seconds:
        return "none"
    half, most, all_of = np.quantile(seconds, (0.5, 0.99, 1.0))
    return f"p50 {half:.3f} s, p99 {most:.3f} s, at most {all_of:.3f} s"


class Load:
    """Asks one storage peer, over the visits' connections."""

    def __init__(self, visits: list[Session]) -> None:
        manifest = visits[0].manifest
        self.wiki = Wiki(manifest.spec, manifest.layout)
        self.acknowledged: set[int] = set()
        self.refused: list[int] = []
        self.chance = Random(1)
        self.pushed = 0
        self._visits = visits
        (self._peer,) = visits[0].storage_peers()
        self._shards = shards = np.arange(manifest.layout.shards, dtype=np.uint16)
        self._all = packed(shards, manifest.layout.shards)
        self._parcels = [self.wiki.cut(n)(shards) for n in range(len(self.wiki.deltas))]
        self._neurons = self.wiki.neurons()

    def next(self) -> int:
        """Return the number of a new chunk."""
        self.pushed += 1
        return self.pushed - 1

    async def push(self, outcomes: Outcomes, number: int | None = None) -> bool:
        """Push a chunk; tell whether it was taken in."""
        number = self.next() if number is None else number
        of, by = number % len(self._parcels), self._visits[number % 2]
        tree = self.wiki.tree(of)
        seal = sealing([Pusher.of(by).vouched(JOB, number, tree.root)], tree)(self._shards)
        question = Push(JOB, number, self._all, self._parcels[of], seal)
        answer = await self._asked(by, question, outcomes)
        if answer is None:
            self.refused.append(number)
            return False
        assert isinstance(answer, Pushed)
        assert answer.shards == self._all
        self.acknowledged.add(number)
        return True

    async def read(self, many: int, outcomes: Outcomes) -> None:
        """Read some rows."""
        found = self.chance.choices(self._neurons, k=many)
        concepts, features = np.array(found, "<u8").T
        question = Read(concepts.tobytes(), features.tobytes())
        answer = await self._asked(self._visits[2], question, outcomes)
        assert answer is None or isinstance(answer, Rows)

    async def chunks(self) -> list[Applied]:
        """Return the sets of chunks that the peer has."""
        shards = self._visits[0].manifest.layout.shards
        answer = await self._asked(self._visits[0], Compare(self._all, [b""] * shards), Outcomes())
        assert isinstance(answer, Compared)
        assert set(answer.which) == set(range(len(answer.sets)))
        return [Applied.from_bytes(chunks) for chunks in answer.sets]

    async def _asked(self, by: Session, question: Message, outcomes: Outcomes) -> Message | None:
        """Return an answer, or None for a refusal that may be tried again; nothing else happens."""
        began = time.monotonic()
        try:
            data = await by.place.transport.call(self._peer, encode(question), timeout=NEVER)
            answer = decode(data)
            busy = answer.reason if isinstance(answer, Refusal) else ""
            assert not isinstance(answer, Refusal) or answer.is_busy, busy
        except net.Refused as error:
            if error.reason is not net.Reason.BUSY:
                raise
            busy = str(error)
        took = time.monotonic() - began
        if busy:
            outcomes.refused[busy] += 1
            outcomes.refused_after.append(took)
            return None
        outcomes.took.append(took)
        return answer


def test_a_peer_that_is_asked_far_too_much_refuses_and_recovers(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=1, replicas=2, arguments=ARGUMENTS) as swarm:
        asyncio.run(overloaded(swarm))


async def overloaded(swarm: LocalSwarm) -> None:
    async with AsyncExitStack() as stack:
        link = Link.read(swarm.link)
        load = Load([await stack.enter_async_context(visit(link)) for _ in range(3)])
        rate = await sustained(load)
        before, peer = load.pushed, swarm.peer("storage-1")
        pid = peer.pid
        small = memory(pid)
        pushes, few, many = Outcomes(), Outcomes(), Outcomes()
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            readers = [
                group.create_task(reading(load, number, few, many)) for number in range(READERS)
            ]
            seconds = await flooded(load, TIMES_TOO_MUCH * rate, pushes)
            for reader in readers:
                reader.cancel()
        relieved = time.monotonic()
        came = load.pushed - before
        grown = memory(pid) - small
        print(f"\n{rate:,.0f} pushes a second are taken in; {came / seconds:,.0f} a second came")
        print(f"all of them were answered after {relieved - began:.1f} s\npushes: {pushes}")
        print(f"reads of a row: {few}\nreads of {MANY}: {many}")
        print(f"in the peer itself, pushes answered: {told_of(within := answered(peer))}")
        print(f"the peer's memory grew by {grown >> 20:,} MiB at most")
        assert len(pushes.took) + pushes.refused.total() == came
        assert pushes.refused.total() > 0
        assert pushes.took
        assert few.took
        for outcomes in (pushes, few, many):
            assert max(outcomes.took + outcomes.refused_after, default=0.0) <= LONGEST
        assert within[LONGEST] == within[math.inf]
        assert grown <= MOST_GROWN
        print(f"it took a push in again after {await recovered(load, relieved):.2f} s")
        await done_again(load)
        assert all(set(chunks.of(JOB)) == load.acknowledged for chunks in await load.chunks())


async def sustained(load: Load) -> float:
    """Return how many pushes a second are taken in when no more are asked than go side by side."""
    outcomes, until = Outcomes(), time.monotonic() + CALIBRATED

    async def push() -> None:
        while time.monotonic() < until:
            await load.push(outcomes)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(push())
    print(f"\nalone: {outcomes}")
    return len(outcomes.took) / CALIBRATED


async def flooded(load: Load, rate: float, outcomes: Outcomes) -> float:
    """Push at a rate, whatever comes of it; return how long, when each push has come to an end."""
    began, before = time.monotonic(), load.pushed
    async with asyncio.TaskGroup() as group:
        while (seconds := time.monotonic() - began) < OVERLOADED:
            due = min(int(rate * seconds), MOST_PUSHES) - (load.pushed - before)
            for _ in range(due):
                group.create_task(load.push(outcomes, load.next()))
            await asyncio.sleep(EVERY)
    return seconds


async def reading(load: Load, number: int, few: Outcomes, many: Outcomes) -> None:
    """Read and read."""
    while True:
        await asyncio.sleep(PAUSE * load.chance.random() * 2)
        if number % 10:
            await load.read(1, few)
        else:
            await load.read(MANY, many)


async def recovered(load: Load, relieved: float) -> float:
    """Return how long after the relief the peer takes in what it is asked to."""
    while not await load.push(Outcomes()):
        assert time.monotonic() < relieved + RECOVERS_WITHIN
        await asyncio.sleep(PAUSE)
    return time.monotonic() - relieved


async def done_again(load: Load) -> None:
    """See that what was refused is taken in now."""
    again, outcomes = load.refused[:AGAIN], Outcomes()
    for number in again:
        assert await load.push(outcomes, number), outcomes
    print(f"refused before: {outcomes}")
    assert set(again) <= load.acknowledged


def answered(peer: View) -> dict[float, int]:
    """Return how many pushes a peer has answered within so many seconds, refusals too."""
    address = f"http://127.0.0.1:{peer.metrics_port}/metrics"
    with urllib.request.urlopen(address) as page:
        found = _BUCKET.findall(page.read().decode())
    return {float(bound): int(float(many)) for bound, many in found}


def told_of(within: dict[float, int]) -> str:
    """Return in words how many were answered within so many seconds."""
    return ", ".join(f"{many:,} within {bound:g} s" for bound, many in within.items())


def memory(pid: int) -> int:
    """Return the most bytes that a process ever had in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (most,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(most) << 10
