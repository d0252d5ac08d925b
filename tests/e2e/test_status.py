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
        assert await missing(visiting) == away
        for name, harm in (("storage-1", swarm.kill), ("storage-2", swarm.stop)):
            away.add(swarm.peer(name).peer)
            await asyncio.to_thread(harm, name)
            if harm == swarm.kill:
                await asyncio.to_thread(swarm.wait_ended, name)
            assert await missing(visiting) == away
        await asyncio.to_thread(swarm.cont, "storage-2")


async def missing(visiting: Session) -> set[str]:
    """Return who is shown as silent, or as gone; what they hold does not count.

    Three attempts to call a peer take twelve seconds. On a busy machine its record may expire
    meanwhile, and then it is gone.
    """
    found = visiting.overview(await visiting.silent_peers())
    away = [*found.silent, *found.gone]
    assert (found.verdict == "healthy") == (not away)
    return set(map(name_of, away))
