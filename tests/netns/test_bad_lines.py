"""Lines that lose much or carry little: all takes longer, and comes to an end."""

import asyncio
import time
from itertools import islice
from pathlib import Path

import pytest

from giaann_p2p.client.session import Session
from giaann_p2p.model.delta import total
from giaann_p2p.model.learn import learn
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.transfer import Export
from tests.benchmarks.zipf import Zipf
from tests.e2e.material import WIKI, Material, Wiki, made_up
from tests.e2e.writer import settled
from tests.netns.conftest import NewSwarm
from tests.pushing import Pusher

pytestmark = [pytest.mark.netns, pytest.mark.timeout(600)]
LOST = 10.0
TIMES = 5
RATE = "1mbit"
CONNECTIONS = 600_000
REPLICAS = 3
MOST_TIMES = 2.0
SENTENCES = 1024
MOST_TIMES_SENT = 1.2
JOB = b"made-up sentences"[:16]
AT_ONCE = 4


def test_a_text_is_learned_while_packets_are_lost(new_swarm: NewSwarm, tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    text.write_text("\n".join([WIKI.read_text()] * TIMES))
    with new_swarm() as swarm:
        swarm.add("compute")
        swarm.wait_ready()
        visitor = swarm.visitor()
        for host in swarm.network.hosts:
            swarm.network.loss(host, LOST)
        told = swarm.told("train", str(text), host=visitor.host)
        swarm.network.heal()
        print(f"\n{told}")
        assert told["complete"]
        manifest = visitor.visiting.manifest
        wiki = Wiki(manifest.spec, manifest.layout, text)
        for number in range(len(wiki.deltas)):
            wiki.committed(wiki.job(1), number, number)
        visitor.do(settled(visitor.visiting, wiki, peers=3))
        assert swarm.told("fsck", host=visitor.host)["digest"] == wiki.digest


def test_a_peer_joins_over_a_thin_line(new_swarm: NewSwarm) -> None:
    with new_swarm() as swarm:
        visitor = swarm.visitor()
        manifest = visitor.visiting.manifest
        material = Material(made_up(CONNECTIONS, manifest.spec), manifest.spec, manifest.layout)
        visitor.do(pushed(visitor.visiting, material))
        thin = swarm.network.host()
        thin.bandwidth(RATE)
        began = time.monotonic()
        swarm.add("storage", host=thin).wait_ready()
        seconds = time.monotonic() - began
        came, held = thin.received, bytes_of(material) * REPLICAS / 4
        print(
            f"\n{came / 1e6:.2f} MB came over a line of {RATE} in {seconds:.1f} s,"
            f" {came / held:.2f} times what a peer holds"
        )
        assert came <= MOST_TIMES * held
        visitor.do(settled(visitor.visiting, material, peers=4))
        told = swarm.told("status", host=thin)
        assert told["verdict"] == "healthy"


def test_a_large_chunk_leaves_once_over_a_thin_line(new_swarm: NewSwarm) -> None:
    with new_swarm(founding=("--chunk", str(SENTENCES))) as swarm:
        visitor = swarm.visitor()
        manifest = visitor.visiting.manifest
        chunks = islice(Zipf().chunks(manifest.spec, 1), SENTENCES // CHUNK)
        delta = total([learn(one, manifest.spec) for one in chunks])
        material = Material([delta], manifest.spec, manifest.layout)
        size = len(encode(delta))
        visitor.host.bandwidth(RATE)
        before, began = visitor.host.sent, time.monotonic()
        visitor.do(pushed(visitor.visiting, material))
        seconds, left = time.monotonic() - began, visitor.host.sent - before
        before = visitor.host.sent
        visitor.do(asyncio.sleep(seconds))
        others = visitor.host.sent - before  # what a visitor sends anyway, in as much time
        print(
            f"\na chunk of {size / 1e6:.2f} MB was committed over a line of {RATE} in"
            f" {seconds:.1f} s; {(left - others) / size:.2f} times as much left for it,"
            f" {left / size:.2f} in all"
        )
        assert left - others <= MOST_TIMES_SENT * size
        visitor.do(settled(visitor.visiting, material, peers=3))


def bytes_of(material: Material) -> int:
    """Return how many bytes all shards have as they travel."""
    shards = material.twin.shards.tolist()
    return sum(Export(material.twin.content(shard)).size for shard in shards)


async def pushed(visiting: Session, material: Material) -> None:
    """Push each delta as a chunk."""
    room, pusher = asyncio.Semaphore(AT_ONCE), Pusher.of(visiting)

    async def push(number: int) -> None:
        async with room:
            await pusher.push(JOB, number, material.cut(number), material.tree(number))
        material.committed(JOB, number, number)

    async with asyncio.TaskGroup() as group:
        for number in range(len(material.deltas)):
            group.create_task(push(number))
