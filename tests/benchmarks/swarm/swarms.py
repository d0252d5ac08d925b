"""Swarms of real processes, and a visit to one when all of it is known."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median

from giaann_p2p.client.session import Session, visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.swarm.wire.link import Link
from giaann_p2p.swarm.wire.member_messages import AskManifest
from giaann_p2p.swarm.wire.messages import encode
from tests.benchmarks.swarm import far
from tests.benchmarks.swarm.asked import computing

REPLICAS = 3
_KNOWN_WITHIN = 120.0
_PAUSE = 0.1
_TIMES = 30
_TIMEOUT = 5.0


def swarm_of(storages: int, computes: int, delay: float = 0.0, chunk: int = CHUNK) -> LocalSwarm:
    """Return a swarm, to be entered; `delay`: seconds that bytes are under way between any two.

    `chunk`: sentences in a chunk.
    """
    apart = {"entries": far.ENTRIES, "environment": {far.DELAY: str(delay)}} if delay else {}
    return LocalSwarm(
        profile="words",
        storages=storages,
        computes=computes,
        replicas=min(REPLICAS, storages),
        chunk=chunk,
        **apart,
    )


@asynccontextmanager
async def visiting(swarm: LocalSwarm) -> AsyncIterator[Session]:
    """Visit a swarm, and know all its peers to be ready."""
    async with visit(Link.read(swarm.link)) as found:
        await known(found, swarm)
        yield found


async def known(visiting: Session, swarm: LocalSwarm) -> None:
    """Wait until a visitor knows all peers, and that every shard has its replicas and no others.

    In a swarm that has just begun, peers hold the shards of those that came later for a while.
    """
    until = time.monotonic() + _KNOWN_WITHIN
    while not _knows(visiting, await asyncio.to_thread(_counts, swarm)):
        if time.monotonic() > until:
            raise SystemExit(f"not all of the swarm is known within {_KNOWN_WITHIN:g} s")
        await asyncio.sleep(_PAUSE)


async def round_trip(visiting: Session) -> float:
    """Return the seconds that a short question to a storage peer takes, on a connection."""
    question, peers, found = encode(AskManifest()), visiting.storage_peers(), []
    for peer in peers:
        for _ in range(_TIMES):
            began = time.perf_counter()
            await visiting.place.transport.call(peer, question, timeout=_TIMEOUT)
            found.append(time.perf_counter() - began)
    return median(found)


def _counts(swarm: LocalSwarm) -> tuple[int, int]:
    roles = [peer.role for peer in swarm.peers()]
    return roles.count("storage"), roles.count("compute")


def _knows(visiting: Session, counts: tuple[int, int]) -> bool:
    if (len(visiting.storage_peers()), len(computing(visiting))) != counts:
        return False
    now, around = visiting.lookout.time(), visiting.around
    replicas = min(visiting.manifest.replicas, counts[0])
    shards = range(visiting.manifest.layout.shards)
    return all(len(around.ready(shard, now)) == replicas for shard in shards)
