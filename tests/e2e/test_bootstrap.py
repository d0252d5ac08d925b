"""Bootstrap peers only introduce others: a swarm that has lost all of them goes on."""

import asyncio
import signal

import pytest

from giaann_p2p.client.session import visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import Wiki
from tests.e2e.writer import Writer

pytestmark = pytest.mark.e2e
BOOTSTRAPS = ("bootstrap-1", "bootstrap-2")


def test_without_bootstrap_peers_all_goes_on(new_swarm: NewSwarm) -> None:
    with new_swarm(bootstraps=len(BOOTSTRAPS), storages=4) as swarm:
        figures = asyncio.run(gone_on(swarm))
    print(f"\n{figures}")


async def gone_on(swarm: LocalSwarm) -> str:
    async with visit(Link.read(swarm.link)) as visiting:
        writer = Writer(visiting, Wiki(visiting.manifest.spec, visiting.manifest.layout))
        await writer.learn()
        for name in BOOTSTRAPS:
            swarm.kill(name)
            swarm.wait_ended(name)
        async with asyncio.TaskGroup() as group:
            group.create_task(writer.run())
            await harmed(swarm)
            writer.end()
        await writer.settled(peers=4)
    swarm.restart(BOOTSTRAPS[0])
    swarm.wait_ready([BOOTSTRAPS[0]])
    async with visit(Link.read(swarm.link)) as another:
        assert len(another.storage_peers()) == 4
    return str(writer.figures)


async def harmed(swarm: LocalSwarm) -> None:
    """Have one peer come back after a kill, and another after it has left."""
    for name, number in (("storage-1", signal.SIGKILL), ("storage-2", signal.SIGTERM)):
        await asyncio.to_thread(swarm.kill, name, number)
        await asyncio.to_thread(swarm.wait_ended, name, 120.0)
        await asyncio.to_thread(swarm.restart, name)
        await asyncio.to_thread(swarm.wait_ready, [name], 120.0)
