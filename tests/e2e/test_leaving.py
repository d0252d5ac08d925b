"""All peers are told to leave together: nobody can hand over, and nobody waits for it."""

import asyncio
import signal

import pytest

from giaann_p2p.client.session import visit
from giaann_p2p.exit_codes import LEFT_BEHIND
from giaann_p2p.local.logs import Log
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import Wiki
from tests.e2e.writer import Writer

pytestmark = pytest.mark.e2e
PEERS = ("storage-1", "storage-2", "storage-3")


def test_peers_that_all_leave_end_at_once_and_come_back_with_everything(
    new_swarm: NewSwarm,
) -> None:
    with new_swarm(storages=len(PEERS)) as swarm:
        asyncio.run(come_back(swarm))


async def come_back(swarm: LocalSwarm) -> None:
    async with visit(Link.read(swarm.link)) as visiting:
        writer = Writer(visiting, Wiki(visiting.manifest.spec, visiting.manifest.layout))
        await writer.learn()
        await writer.settled(peers=len(PEERS))  # a quorum has it before the last one does
        await asyncio.to_thread(all_left, swarm)
        for name in PEERS:
            await asyncio.to_thread(swarm.restart, name)
        await asyncio.to_thread(swarm.wait_ready, PEERS, 120.0)
        await writer.settled(peers=len(PEERS))


def all_left(swarm: LocalSwarm) -> None:
    for name in PEERS:
        swarm.kill(name, signal.SIGTERM)
    for name in PEERS:
        assert swarm.wait_ended(name, 60.0) == LEFT_BEHIND
        said = "\n".join(Log(swarm.folder, name).last(100))
        assert "leaving now: " in said
        assert "leaving as well, so none stays to take them" in said
        assert "Nothing is lost: they stay in " in said
