"""A small swarm of real processes that holds what a brain knows."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from giaann_p2p.client.session import Session, visit
from giaann_p2p.local.swarm import LocalSwarm
from giaann_p2p.model.delta import Delta
from giaann_p2p.solo.brain import Brain
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import made
from giaann_p2p.store.update import Update, cut
from giaann_p2p.swarm.wire.link import Link
from tests.cli.conftest import Done, Run
from tests.pushing import Pusher
from tests.unit.net.hive.helpers import until

SHARDS = 4
_JOB = b"a job of a test."


class Running(NamedTuple):
    """A healthy swarm, and how it was with too few peers."""

    link: str
    alone: Done
    alone_fsck: Done


@contextmanager
def living(giaann: Run, brain: Path) -> Iterator[Running]:
    """Let one live."""
    with LocalSwarm(
        name="bees", profile="words", shards=SHARDS, replicas=2, storages=1, grace=1.0
    ) as local:
        link = local.link
        alone = giaann("status", "--join", link), giaann("fsck", "--no-wait", "--join", link)
        local.add("storage")
        local.wait_ready()
        with Brain.open(brain, readonly=True) as opened:
            asyncio.run(_brought(link, opened.knowledge))
        yield Running(link, *alone)


async def _brought(link: str, knowledge: Delta) -> None:
    """Bring to a swarm, as one chunk, all that a brain knows; return when the swarm is healthy."""
    async with visit(Link.read(link)) as visiting:
        await until(lambda: len(visiting.storage_peers()) == 2)
        layout = visiting.manifest.layout
        tree = made(knowledge, layout)
        pusher = Pusher.of(visiting)
        await pusher.push(_JOB, 0, lambda shards: _part(visiting, knowledge, shards), tree)
        await until(lambda: visiting.overview().verdict == "healthy", within=60)


def _part(visiting: Session, knowledge: Delta, shards: Shards) -> bytes:
    every = np.arange(SHARDS, dtype=np.uint16)
    update = Update(_JOB, 0, every, knowledge)
    return encode(cut(update, shards, visiting.manifest.layout).delta)
