"""Two of five peers are harmed all the while, and the swarm learns on, nothing lost, nothing twice.

GIAANN_CHURN_SECONDS=300 goes on as long; GIAANN_CHURN_SEED=7 repeats what another seed has found.
"""

import asyncio
import os

import pytest

from giaann_p2p.client.session import visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.havoc import Havoc
from tests.e2e.material import Wiki
from tests.e2e.writer import Writer

SECONDS = float(os.environ.get("GIAANN_CHURN_SECONDS", "30"))
SEED = int(os.environ.get("GIAANN_CHURN_SEED", "1"))
_QUIET_WITHIN = 120.0

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400 + 2 * SECONDS)]


def test_a_swarm_learns_while_its_peers_are_harmed(new_swarm: NewSwarm) -> None:
    with new_swarm() as swarm:
        havoc = Havoc(swarm, SEED)
        try:
            writer = asyncio.run(churned(swarm, havoc))
        except BaseException:
            print(f"seed {SEED}; GIAANN_CHURN_SEED={SEED} repeats the order of what was done:")
            raise
        finally:
            print("\n".join(["", *havoc.story]))
    print(f"\nseed {SEED}, {SECONDS:g} s: {havoc}\n{writer.epochs} epochs: {writer.figures}")
    print(f"the swarm's digest and solo's: {writer.wiki.digest}")
    assert writer.figures.chunks == writer.epochs * len(writer.wiki.deltas)
    assert set(havoc.counts) == {"kill", "stop", "drain", "p2pd"}


async def churned(swarm: LocalSwarm, havoc: Havoc) -> Writer:
    async with visit(Link.read(swarm.link)) as visiting:
        manifest = visiting.manifest
        writer = Writer(visiting, Wiki(manifest.spec, manifest.layout), SEED)
        async with asyncio.TaskGroup() as group:
            group.create_task(writer.run())
            await havoc.run(SECONDS)
            writer.end()
        await writer.settled(havoc.peers, _QUIET_WITHIN)
        return writer
