"""Joins a swarm for a command: p2pd starts while the rest of the client is imported."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from giaann_p2p.client.launch import launched

if TYPE_CHECKING:
    from giaann_p2p.client.oracle import Oracle
    from giaann_p2p.client.session import Session


@asynccontextmanager
async def visiting(join: str, verify: float | None = None) -> AsyncIterator["Session"]:
    """Start a session with a link's swarm; `verify` as for `visit`, by default a small share."""
    async with launched() as launch:
        await launch.meanwhile("giaann_p2p.client.session")
        from giaann_p2p.client.session import visit
        from giaann_p2p.swarm.reading.row_vote import USUAL
        from giaann_p2p.swarm.wire.link import Link

        share = USUAL if verify is None else verify
        async with visit(Link.read(join), launch, verify=share) as session:
            yield session


@asynccontextmanager
async def oracle_of(join: str, local: bool, device: str, verify: float) -> AsyncIterator["Oracle"]:
    """Join a link's swarm and yield an `Oracle` for it; the arguments are those of `oracle`."""
    async with launched() as launch:
        await launch.meanwhile("giaann_p2p.client.oracle")
        from giaann_p2p.client.oracle import oracle

        async with oracle(join, local, device, verify, launch) as found:
            yield found
