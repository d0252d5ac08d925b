"""Chunks pushed into one storage peer, as fast as it makes them durable."""

import asyncio
import secrets
import time
from statistics import median

from giaann_p2p.client.session import Session
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import Tree
from tests.benchmarks.network.figures import Figure
from tests.benchmarks.network.learned import Learned
from tests.benchmarks.targets import Target
from tests.pushing import Pusher

_UNDER_WAY = 16


async def pushes(visiting: Session, learned: Learned, rounds: int) -> list[Figure]:
    """Push all chunks, each round as another job."""
    await _pushed(visiting, learned, 1)
    rates = [learned.increments / await _pushed(visiting, learned) for _ in range(rounds)]
    size = learned.size / learned.increments
    return [
        Figure("durable push into one peer", median(rates), "increments/s", Target(least=1e6)),
        Figure("a chunk's delta as pushed", size, "bytes a connection", Target(most=4)),
    ]


async def _pushed(visiting: Session, learned: Learned, chunks: int | None = None) -> float:
    """Push the first so many, or all; return the seconds it took."""
    job, room = secrets.token_bytes(16), asyncio.Semaphore(_UNDER_WAY)
    pusher = Pusher.of(visiting)

    async def push(number: int, parcel: bytes, tree: Tree) -> None:
        def cut(shards: Shards) -> bytes:
            return parcel  # one peer holds all shards

        async with room:
            await pusher.push(job, number, cut, tree)

    began = time.perf_counter()
    await asyncio.gather(
        *[
            push(number, *one)
            for number, one in enumerate(
                zip(learned.parcels[:chunks], learned.trees[:chunks], strict=True)
            )
        ]
    )
    return time.perf_counter() - began
