"""`giaann status` tells the truth at once: who was killed, or hangs, does not pass for well."""

import asyncio

import pytest

from giaann_p2p.client.session import Session, visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm

pytestmark = pytest.mark.e2e


def test_who_does_not_answer_is_silent(new_swarm: NewSwarm) -> None:
    # With fewer replicas than peers, a new swarm has more than it needs, and one may be missing.
    with new_swarm(storages=3, replicas=3) as swarm:
        asyncio.run(looked_at(swarm))


async def looked_at(swarm: LocalSwarm) -> None:
    async with visit(Link.read(swarm.link)) as visiting:
        while visiting.overview().verdict != "healthy":  # noqa: ASYNC110  (of other processes)
            await asyncio.sleep(0.1)
        away = set[str]()
        assert await silent(visiting) == away
        for name, harm in (("storage-1", swarm.kill), ("storage-2", swarm.stop)):
            away.add(harmed := swarm.peer(name).peer)
            await asyncio.to_thread(harm, name)
            if harm == swarm.kill:
                await asyncio.to_thread(swarm.wait_ended, name)
            found = await silent(visiting)
            # On a busy machine the killed peer's record may have expired by the time of the answer.
            there = {name_of(one.peer) for one in visiting.overview().peers}
            assert harmed in found
            assert away & there <= found <= away
        await asyncio.to_thread(swarm.cont, "storage-2")


async def silent(visiting: Session) -> set[str]:
    """Return who is shown as silent; what they hold does not count."""
    found = visiting.overview(await visiting.silent_peers())
    assert (found.verdict == "healthy") == (not found.silent)
    return {name_of(peer) for peer in found.silent}
