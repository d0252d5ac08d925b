"""Sends the founder's documents to a swarm; unreached peers get them from others by gossip."""

import asyncio

from giaann_p2p.client.session import Session
from giaann_p2p.errors import PeerError
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.member_messages import EditionIs, RevokedIs
from giaann_p2p.swarm.wire.messages import decode, encode

_WITHIN = 6.0
"""Timeout of one call, in seconds."""
_AT_ONCE = 64
"""Maximum number of concurrent calls."""


async def tell(visiting: Session, revoked: bytes) -> tuple[int, int]:
    """Send a revocation list to all live peers; return how many accepted it, of how many asked."""
    return await spread(visiting, RevokedIs(revoked))


async def spread(visiting: Session, document: RevokedIs | EditionIs) -> tuple[int, int]:
    """Send a document to all live peers; return how many accepted it, of how many asked."""
    turns = asyncio.Semaphore(_AT_ONCE)
    live = visiting.around.directory.live(visiting.lookout.time())
    peers = {said.peer for said in live} | {*visiting.place.book.peers}

    async def heard(peer: Peer) -> bool:
        async with turns:
            try:
                message = encode(document)
                answer = await visiting.place.transport.call(peer, message, timeout=_WITHIN)
                return isinstance(decode(answer), type(document))
            except PeerError:
                return False

    found = await asyncio.gather(*map(heard, peers))
    return sum(found), len(peers)
