"""The founder's bootstrap peer doubles the shards by itself, 16 into 64, while a swarm learns."""

import asyncio
from pathlib import Path

import pytest

from bootstrap.daemon import main
from giaann_p2p.client.session import visit
from giaann_p2p.local.logs import Log
from giaann_p2p.local.roles import ENTRIES
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.node.members import resharder
from giaann_p2p.solo.brain import Brain
from giaann_p2p.swarm.members import reshard_rule
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.commands import fsck
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import WIKI, Wiki
from tests.e2e.writer import Writer

STORAGES, FEW, ENOUGH = 3, 16, 64
WITHIN = 180.0

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def eager(arguments: list[str]) -> int:
    """Run a bootstrap peer that looks at the swarm more often, and waits no hour."""
    resharder.EVERY, reshard_rule.PAUSE = 0.3, 1.0
    return main(arguments)


def test_a_growing_swarm_gets_more_shards_without_a_command(
    new_swarm: NewSwarm, tmp_path: Path
) -> None:
    entries = {**ENTRIES, "bootstrap": f"{__name__}:eager"}
    size = {"storages": STORAGES, "shards": FEW, "reshard": "auto"}
    with new_swarm(entries=entries, **size) as swarm:
        writer = asyncio.run(raised(swarm))
        with Brain.open(tmp_path / "solo", ModelSpec()) as brain:
            brain.train(WIKI, epochs=writer.epochs)
        told = fsck(swarm.link, tmp_path / "solo")
        signed = [line for line in Log(swarm.folder, "bootstrap-1").last(1000) if "signed" in line]
    assert (told["equal"], told["digest"]) == (True, writer.wiki.digest)
    assert [line.partition("rules: ")[2] for line in signed] == [
        "32 shards, because 3 storage peers had 16 each",
        "64 shards, because 3 storage peers had 32 each",
    ]


async def raised(swarm: LocalSwarm) -> Writer:
    """Let the swarm learn until it has enough shards, and return when all replicas are equal."""
    async with visit(Link.read(swarm.link)) as visiting:
        rules = visiting.gate.rules
        writer = Writer(visiting, Wiki(visiting.manifest.spec, rules().layout))
        enough = asyncio.Event()

        def follow() -> None:
            writer.wiki.divide(rules().layout)
            if rules().shards == ENOUGH:
                enough.set()

        follow()
        visiting.gate.on_edition(follow)
        async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as group:
            group.create_task(writer.run())
            await enough.wait()
            writer.end()
        await writer.settled(STORAGES, WITHIN)
        return writer
