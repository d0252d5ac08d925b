"""Asking peers whether they are there: what a directory says of one may be half a minute old."""

import asyncio
from collections.abc import Sequence

from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import Refused
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import AskManifest, encode
from giaann_p2p.swarm.settings import Settings

_WITHIN = Settings().call_timeout
"""As peers judge each other. It includes the first connection: half a dozen ways there and back."""
_AT_ONCE = 64


async def silent(
    transport: Transport, peers: Sequence[Peer], within: float = _WITHIN
) -> frozenset[Peer]:
    """Return those that do not answer; a refusal is an answer, too."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def answers(peer: Peer) -> bool:
        async with turns:
            try:
                await transport.call(peer, encode(AskManifest()), timeout=within)
            except Refused:
                return True
            except PeerError:
                return False
            return True

    found = await asyncio.gather(*map(answers, peers))
    return frozenset(peer for peer, there in zip(peers, found, strict=True) if not there)
