"""Telling a swarm who is no longer a member; whoever is not reached hears of it from the others."""

import asyncio

from giaann_p2p.client.visit import Visit
from giaann_p2p.errors import PeerError
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import RevokedIs, decode, encode

_WITHIN = 6.0
_AT_ONCE = 64


async def tell(visiting: Visit, revoked: bytes) -> tuple[int, int]:
    """Tell all peers that are there; return how many have heard it, and of how many."""
    turns = asyncio.Semaphore(_AT_ONCE)
    live = visiting.around.directory.live(visiting.lookout.time())
    peers = {said.peer for said in live} | {*visiting.place.book.peers}

    async def heard(peer: Peer) -> bool:
        async with turns:
            try:
                message = encode(RevokedIs(revoked))
                answer = await visiting.place.transport.call(peer, message, timeout=_WITHIN)
                return isinstance(decode(answer), RevokedIs)
            except PeerError:
                return False

    found = await asyncio.gather(*map(heard, peers))
    return sum(found), len(peers)
