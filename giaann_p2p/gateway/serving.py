"""Serves a swarm or a brain from start to end, for `giaann serve`."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from giaann_p2p.gateway import whereabouts
from giaann_p2p.gateway.app import gateway
from giaann_p2p.gateway.backend import Backend, Facts
from giaann_p2p.gateway.brain_backend import BrainBackend
from giaann_p2p.gateway.context import context_of
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.rules import Access
from giaann_p2p.gateway.server import address_of, bound, cancel_at_signals, run
from giaann_p2p.model.traits import traits_of
from giaann_p2p.solo.brain import Brain


class Listening(NamedTuple):
    """Where a gateway is to listen, and whom it admits."""

    host: str
    port: int
    access: Access
    key_file: str = ""


async def serve(
    backing: AbstractAsyncContextManager[Backend],
    listening: Listening,
    limits: Limits,
    file: Path,
    tell: Callable[[str, Facts, bool], None],
) -> None:
    """Serve until a signal ends it; call `tell` with the address once the gateway answers.

    `file` tells other commands where the gateway is. The port is bound before anything slow, so
    that a port in use is reported at once.
    """
    cancel_at_signals()
    with bound(listening.host, listening.port) as door:
        async with backing as backend:
            facts = backend.facts
            count = await asyncio.to_thread(traits_of(facts.profile).counter)
            found = gateway(context_of(backend, limits, count), listening.access)
            where = whereabouts.Whereabouts(
                url=_reached(address_of(door)), pid=os.getpid(), key_file=listening.key_file
            )
            with whereabouts.told(file, where) as is_first:
                url = address_of(door)
                await run(found, door, lambda: tell(url, facts, is_first))


@asynccontextmanager
async def brain_backend(folder: Path, name: str, *, training: bool) -> AsyncIterator[Backend]:
    """Open a brain, only for reading unless it may learn, and serve it during the context."""
    brain = await asyncio.to_thread(lambda: Brain.open(folder, readonly=not training, create=False))
    try:
        backend = BrainBackend(brain, name, training=training)
        try:
            yield backend
        finally:
            await backend.close()
    finally:
        brain.close()


def _reached(url: str) -> str:
    """Return the address at which this machine reaches a gateway that listens everywhere."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
