"""A whole swarm that is killed while it learns comes back with all that it has acknowledged."""

import asyncio
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from giaann_p2p.client.session import visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.brain import Brain
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.commands import fsck
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import WIKI, Wiki
from tests.e2e.writer import Writer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
PEERS = 5
SECONDS = 3.0


def test_a_swarm_that_was_killed_comes_back(new_swarm: NewSwarm, tmp_path: Path) -> None:
    with ExitStack() as swarms:
        first = swarms.enter_context(new_swarm(storages=PEERS))
        writer = asyncio.run(taught(first, new_swarm, swarms))
        print(f"\n{writer.figures}")
        with Brain.open(tmp_path / "solo", ModelSpec()) as brain:
            brain.train(WIKI, epochs=writer.epochs)
        told = fsck(first.folder.record().link, tmp_path / "solo")
    assert (told["equal"], told["digest"]) == (True, writer.wiki.digest)


async def taught(first: LocalSwarm, new_swarm: NewSwarm, swarms: ExitStack) -> Writer:
    """Teach a swarm, kill it meanwhile, bring it back and go on."""
    link = first.link
    async with visit(Link.read(link)) as visiting:
        writer = Writer(visiting, Wiki(visiting.manifest.spec, visiting.manifest.layout))
        async with asyncio.TaskGroup() as group:
            learning = group.create_task(writer.write())
            await asyncio.sleep(SECONDS)
            os.kill(first.look().pid, signal.SIGKILL)
            await asyncio.to_thread(first.close)
            second = await asyncio.to_thread(swarms.enter_context, new_swarm(storages=PEERS))
            assert second.link == link
            await asyncio.sleep(SECONDS)
            assert not learning.done()
            writer.end()
        await writer.settled(PEERS)
        return writer
