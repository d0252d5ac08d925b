"""Storage peers divide their shards while a text is learned and rows are read, and lose nothing."""

import asyncio

import numpy as np
import pytest

from giaann_p2p.client.session import Session, visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.node.members.membership import TokenIssuer
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.wire.edition import Editions
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.member_messages import EditionIs
from giaann_p2p.swarm.wire.messages import AskDigests, Digest, Digests, decode, encode
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from tests.e2e.conftest import SHARDS, NewSwarm
from tests.e2e.material import Wiki
from tests.e2e.writer import Writer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]
WITHIN = 120.0
STEPS = 2 * SHARDS, 16 * SHARDS


def test_shards_are_divided_twice_while_a_peer_is_killed(new_swarm: NewSwarm) -> None:
    with new_swarm(storages=3) as swarm:
        asyncio.run(divided(swarm))


async def divided(swarm: LocalSwarm) -> None:
    async with visit(Link.read(swarm.link)) as visiting:
        writer = Writer(visiting, Wiki(visiting.manifest.spec, visiting.manifest.layout))
        await writer.learn()
        working, editions = asyncio.create_task(writer.run()), Editions(visiting.manifest)
        founder = TokenIssuer(swarm.folder.data("bootstrap-1")).founder
        assert founder is not None
        for shards in STEPS:
            edition = editions.next(founder, shards=shards).to_bytes()
            editions.learn(edition)
            for peer in visiting.storage_peers()[:2]:  # one of them may be killed at once
                message = encode(EditionIs(edition))
                answer = await visiting.place.transport.call(peer, message, timeout=10.0)
                assert decode(answer) == EditionIs(b"")
            await asyncio.to_thread(swarm.kill, "storage-2")
            await learned(writer, writer.figures.chunks + 10)
            await asyncio.to_thread(swarm.restart, "storage-2")
            await asyncio.to_thread(swarm.wait_ready, ["storage-2"], WITHIN)
            await learned(writer, writer.figures.chunks + 10)
            assert visiting.around.rules.shards == shards
        writer.end()
        await working
        print(writer.figures)
        twin = writer.wiki.twin
        twin.double(STEPS[-1])
        assert len(visiting.storage_peers()) == 3
        for peer in visiting.storage_peers():
            await equal(visiting, peer, twin)


async def learned(writer: Writer, chunks: int) -> None:
    """Return when so many chunks are committed."""
    async with asyncio.timeout(WITHIN):
        while True:
            if writer.figures.chunks >= chunks:
                return
            await asyncio.sleep(0.1)


async def equal(visiting: Session, peer: Peer, twin: Store) -> None:
    """Return when a peer has all shards ready, with exactly what the twin has."""
    wanted, sets = dict(twin.digests()), twin.sets(range(count := STEPS[-1]))
    right = [
        (b"r", sets[shard].digest, wanted[shard].to_bytes(32, "little")) for shard in range(count)
    ]
    async with asyncio.timeout(WITHIN):
        while True:
            found = await told(visiting, peer)
            if [(one.state, one.chunks, one.content) for one in found] == right:
                return
            await asyncio.sleep(0.5)


async def told(visiting: Session, peer: Peer) -> list[Digest]:
    """Return what a peer tells of all its shards."""
    left, rules = np.arange(STEPS[-1], dtype=np.uint16), visiting.around.rules
    found = list[Digest]()
    while len(left):
        question = encode(AskDigests(packed(left, rules.shards)), rules.layout.doublings)
        answer = decode(await visiting.place.transport.call(peer, question, timeout=20.0))
        assert isinstance(answer, Digests)
        found += answer.found
        left = left[len(unpacked(answer.shards, rules.shards)) :]
    return found
