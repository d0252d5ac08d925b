"""A running swarm gets a further replica of each shard, then larger chunks, and loses nothing."""

import asyncio

import pytest

from giaann_p2p.client.checkup import checked_now
from giaann_p2p.client.session import Session, visit
from giaann_p2p.client.training import Trainer
from giaann_p2p.local.logs import Log
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.swarm.wire.edition import Editions
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.member_messages import AskEdition, EditionIs
from giaann_p2p.swarm.wire.messages import decode, encode
from tests.e2e.commands import reshard
from tests.e2e.conftest import NewSwarm
from tests.e2e.material import Wiki
from tests.e2e.writer import Writer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
PEERS = 5
WITHIN = 120.0
RECEIVED = "received edition 1"
TEXT = "".join(f"The cat of {number} sat on the mat.\n" for number in range(200))


def test_a_swarm_gets_more_replicas_while_it_runs(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=PEERS, computes=1, replicas=2) as swarm:
        asyncio.run(raised(swarm))


async def raised(swarm: LocalSwarm) -> None:
    async with visit(Link.read(swarm.link)) as visiting:
        writer = Writer(visiting, Wiki(visiting.manifest.spec, visiting.manifest.layout))
        await writer.learn()
        before = await writer.settled(PEERS)
        assert visiting.overview().replicas == 2  # at first there may be more than these

        planned = await asyncio.to_thread(reshard, swarm, "--replicas", "3", "--dry-run")
        assert planned["replicas"] == {"before": 2, "after": 3}
        assert planned["copied"] == visiting.manifest.layout.shards
        assert (planned["edition"], planned["told"]) == (0, 0)
        assert visiting.around.rules.edition == 0

        done = await asyncio.to_thread(reshard, swarm, "--replicas", "3", "--yes")
        assert done["edition"] == 1
        assert done["told"] == done["peers"] > PEERS
        await learned(visiting, 1)
        after = await writer.settled(PEERS)
        assert after.digest == before.digest
        found = visiting.overview()
        assert (found.replicas, found.edition, found.health.unsettled) == (3, 1, 0)
        assert found.health.least >= 3
        await writer.learn()

        swarm.restart("storage-1")
        await asyncio.to_thread(swarm.wait_ready, ["storage-1"], WITHIN)
        await writer.settled(PEERS)
        assert [await edition_of(visiting, peer) for peer in visiting.storage_peers()] == [1] * 5
        assert RECEIVED not in "\n".join(Log(swarm.folder, "storage-1").last(1000))  # from its disk

        trainer = Trainer(visiting)
        (small,) = await trainer.train(TEXT)
        done = await asyncio.to_thread(reshard, swarm, "--chunk", "128", "--yes")
        assert (done["edition"], done["chunk"]) == (2, {"before": 64, "after": 128})
        await learned(visiting, 2)
        (known,) = await trainer.train(TEXT)
        (large,) = await trainer.train(TEXT + "The dog of 200 ran.\n")
        await trainer.close()
        assert (small.chunks, known.chunks_known, known.chunks, large.chunks) == (4, 4, 0, 2)
        await agreed(visiting)


async def learned(visiting: Session, edition: int) -> None:
    """Return when this client has heard of the edition from the peers."""
    async with asyncio.timeout(WITHIN):
        while True:
            if visiting.around.rules.edition == edition:
                return
            await asyncio.sleep(0.2)


async def agreed(visiting: Session) -> None:
    """Return when all replicas are there, and equal."""
    async with asyncio.timeout(WITHIN):
        while True:
            if (await checked_now(visiting)).agrees:
                return
            await asyncio.sleep(0.2)


async def edition_of(visiting: Session, peer: bytes) -> int:
    """Return the number of the edition that a peer has."""
    message = encode(AskEdition(0))
    answer = decode(await visiting.place.transport.call(peer, message, timeout=10.0))
    assert isinstance(answer, EditionIs)
    found = Editions(visiting.manifest)
    assert found.learn(answer.edition)
    return found.number
