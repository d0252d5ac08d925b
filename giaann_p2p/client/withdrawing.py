"""Asks the owners of shards, for the founder, which chunks are orphans.

An orphan is a chunk for which only disowned peers have vouched, or that the founder searches for.
"""

import asyncio
from collections.abc import Sequence

from giaann_p2p.client.session import Session
from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.training.orphan_quorum import Agreed, agreed
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import AskOrphans, OrphansAre, Refusal, decode, encode
from giaann_p2p.swarm.wire.withdrawn import MOST, Chunk, fault_of, roots_in

_WITHIN = 10.0
"""Timeout of one request, in seconds."""
_PATIENCE = 60.0
"""Seconds to wait for an owner that is still searching: it reads all deltas that it remembers (see
`giaann storage --remember`)."""
_PAUSE = 0.5
"""Seconds until a busy owner is asked again."""
_AT_ONCE = 16
"""Maximum number of owners asked concurrently."""


async def orphans(visiting: Session, number: int, patience: float = _PATIENCE) -> Agreed:
    """Ask all owners for the orphans by the founder's list `number`; return those they agree on."""
    placement = visiting.around.placement(visiting.lookout.time())
    owners = [peer for peer in placement.peers if len(placement.shards_of(peer))]
    return await asked(visiting.place.transport, owners, number, patience)


async def asked(
    transport: Transport, owners: Sequence[Peer], number: int, patience: float
) -> Agreed:
    """Ask owners for the orphans by the founder's list `number`; return those they agree on.

    `patience`: seconds to wait for each owner; an owner that takes longer counts as silent.
    """
    turns = asyncio.Semaphore(_AT_ONCE)

    async def said(owner: Peer) -> dict[Chunk, bytes] | None:
        async with turns:
            try:
                async with asyncio.timeout(patience):
                    return await _orphans(transport, owner, number)
            except (PeerError, TimeoutError):
                return None

    told = await asyncio.gather(*map(said, owners))
    return agreed(dict(zip(owners, told, strict=True)))


async def _orphans(transport: Transport, owner: Peer, number: int) -> dict[Chunk, bytes]:
    """Fetch all orphans that an owner reports, page by page; MessageError if they are malformed."""
    found = dict[Chunk, bytes]()
    page = 0
    while True:
        question = encode(AskOrphans(number, page))
        answer = decode(await transport.call(owner, question, timeout=_WITHIN))
        if isinstance(answer, Refusal) and answer.is_busy:
            await asyncio.sleep(_PAUSE)
            continue
        if not isinstance(answer, OrphansAre):
            raise MessageError("the answer does not contain orphans")
        if fault := fault_of(answer.found):
            raise MessageError(f"orphans: {fault}")
        if answer.number != number:  # the owner has a newer list: start again
            number, page, found = answer.number, 0, {}
            continue
        found |= roots_in(answer.found)
        page += 1
        if page >= answer.pages:
            return found
        if len(found) >= MOST:
            raise MessageError(f"orphans: more than {MOST:,}")
