"""A peer that leaves hands everything over, and who reads meanwhile does not notice.

GIAANN_DRAIN_CONNECTIONS=1000000 gives it as much to hand over.
"""

import asyncio
import os
import random
import signal

import pytest

from giaann_p2p.client.session import Session, visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import Material, made_up, numbers
from tests.e2e.writer import settled
from tests.pushing import Pusher

CONNECTIONS = int(os.environ.get("GIAANN_DRAIN_CONNECTIONS", "200000"))
JOB = b"made-up sentences"[:16]
PEERS = 5
AT_ONCE = 8
GONE_WITHIN = 60.0 + CONNECTIONS / 5_000

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240 + CONNECTIONS / 2_000)]


def test_a_drain_loses_no_read(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=PEERS) as swarm:
        reads, seconds = asyncio.run(drained(swarm))
    print(f"\n{CONNECTIONS:,} connections: handed over in {seconds:.1f} s, {reads} reads meanwhile")


async def drained(swarm: LocalSwarm) -> tuple[int, float]:
    async with visit(Link.read(swarm.link)) as visiting:
        manifest = visiting.manifest
        made = await asyncio.to_thread(made_up, CONNECTIONS, manifest.spec)
        material = Material(made, manifest.spec, manifest.layout)
        pusher = Pusher.of(visiting)
        for chunk in range(len(made)):
            await pusher.push(JOB, chunk, material.cut(chunk), material.tree(chunk))
            material.committed(JOB, chunk, chunk)
        await settled(visiting, material, PEERS)
        loop = asyncio.get_running_loop()
        began, over = loop.time(), asyncio.Event()
        reading = asyncio.create_task(read(visiting, material, over))
        await asyncio.to_thread(swarm.kill, "storage-1", signal.SIGTERM)
        try:
            assert await asyncio.to_thread(swarm.wait_ended, "storage-1", GONE_WITHIN) == 0
            seconds = loop.time() - began
            await asyncio.sleep(2.0)
        finally:
            over.set()
            reads = await reading
        await settled(visiting, material, PEERS - 1)
        return reads, seconds


async def read(visiting: Session, material: Material, over: asyncio.Event) -> int:
    """Read rows, and see that they are right; return how often."""
    chance, count = random.Random(0), 0
    known: list[Neuron] = material.neurons()
    while not over.is_set():
        neurons = chance.sample(known, AT_ONCE)
        found = await visiting.rows(neurons)
        wanted = material.twin.read(Question(neurons))
        assert list(map(numbers, found)) == list(map(numbers, wanted))
        count += 1
    return count
