"""An owner that is killed, or stands still, is gone round: who reads or pushes hardly waits."""

import asyncio

import pytest

from giaann_p2p.client.session import visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.rows import Neuron
from giaann_p2p.swarm.wire.identity import name_of
from giaann_p2p.swarm.wire.link import Link
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import Wiki
from tests.e2e.writer import Figures, Writer

pytestmark = pytest.mark.e2e
PEERS = 4
ROUNDS = 3
EPOCHS = 8
READS_EACH = 4
HARMS = ("stop", "kill")


def test_an_owner_that_is_away_is_gone_round(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=PEERS) as swarm:
        told = asyncio.run(harmed(swarm))
    print()
    for what, figures in told.items():
        print(
            f"{what:9} {len(figures.reads)} reads, the slowest in {figures.slowest('reads'):.3f} s;"
            f" {len(figures.pushes)} pushes, the slowest in {figures.slowest('pushes'):.3f} s"
        )


async def harmed(swarm: LocalSwarm) -> dict[str, Figures]:
    """Return how long reads and pushes took: of all peers, and while one of them was away."""
    found: dict[str, Figures] = {}
    async with visit(Link.read(swarm.link)) as visiting:
        writer = Writer(visiting, Wiki(visiting.manifest.spec, visiting.manifest.layout))
        await used(writer, writer.wiki.telling())
        found["untouched"] = writer.figures
        for number, harm in enumerate(HARMS * ROUNDS):
            name = f"storage-{number % PEERS + 1}"
            neurons = owned(writer, swarm.peer(name).peer)
            writer.figures = found.setdefault(harm, Figures())
            await asyncio.to_thread(getattr(swarm, harm), name)
            await used(writer, neurons)
            await asyncio.to_thread(swarm.cont if harm == "stop" else swarm.restart, name)
            await asyncio.to_thread(swarm.wait_ready, [name])
            await writer.settled(PEERS)
    return found


def owned(writer: Writer, name: str) -> list[Neuron]:
    """Return neurons that a peer owns."""
    visiting, layout = writer.visiting, writer.visiting.manifest.layout
    (peer,) = [peer for peer in visiting.storage_peers() if name_of(peer) == name]
    placement = visiting.around.placement(visiting.lookout.time())
    own = set(placement.shards_of(peer).tolist())
    return [one for one in writer.wiki.telling() if layout.shard_of(*one) in own]


async def used(writer: Writer, neurons: list[Neuron]) -> None:
    """Read and push some dozens of times."""
    for at in range(EPOCHS):
        async with asyncio.TaskGroup() as group:
            group.create_task(writer.learn())
            for neuron in neurons[at::EPOCHS][:READS_EACH]:
                await writer.read([neuron])
