"""Shards are divided, 64 into 1,024, while a swarm learns, is read, and has its peers killed.

GIAANN_CHURN_SECONDS=300 goes on as long between two editions; GIAANN_CHURN_SEED=7 repeats what
another seed has found.
"""

import asyncio
import os
from pathlib import Path

import pytest

from giaann_p2p.client.session import visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.brain import Brain
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.commands import fsck, reshard
from tests.e2e.conftest import SHARDS, NewSwarm
from tests.e2e.havoc import Havoc
from tests.e2e.material import WIKI, Wiki
from tests.e2e.writer import Writer

SECONDS = float(os.environ.get("GIAANN_CHURN_SECONDS", "8"))
SEED = int(os.environ.get("GIAANN_CHURN_SEED", "1"))
_QUIET_WITHIN = 120.0

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(500 + 4 * SECONDS)]


def test_shards_are_divided_while_a_swarm_learns(new_swarm: NewSwarm, tmp_path: Path) -> None:
    with new_swarm() as swarm:
        havoc = Havoc(swarm, SEED, drains=False)
        try:
            writer = asyncio.run(divided(swarm, havoc))
        finally:
            print("\n".join([f"\nseed {SEED}", *havoc.story]))
        print(f"{SECONDS:g} s each: {havoc}\n{writer.epochs} epochs: {writer.figures}")
        with Brain.open(tmp_path / "solo", ModelSpec()) as brain:
            brain.train(WIKI, epochs=writer.epochs)
        told = fsck(swarm.link, tmp_path / "solo")
    assert (told["equal"], told["digest"]) == (True, writer.wiki.digest)


async def divided(swarm: LocalSwarm, havoc: Havoc) -> Writer:
    async with visit(Link.read(swarm.link)) as visiting:
        rules = visiting.gate.rules
        writer = Writer(visiting, Wiki(visiting.manifest.spec, rules().layout), SEED)
        numbers = asyncio.Queue[int]()

        def follow() -> None:
            writer.wiki.divide(rules().layout)
            numbers.put_nowait(rules().shards)

        visiting.gate.on_edition(follow)
        async with asyncio.TaskGroup() as group:
            group.create_task(writer.run())
            for shards in (4 * SHARDS, 16 * SHARDS):
                harm = group.create_task(havoc.run(SECONDS))
                await asyncio.sleep(SECONDS / 2)
                said = await asyncio.to_thread(reshard, swarm, "--shards", str(shards), "--yes")
                assert said["shards"] == {"before": shards // 4, "after": shards}
                await harm
                assert await numbers.get() == shards
            writer.end()
        await writer.settled(havoc.peers, _QUIET_WITHIN)
        return writer
