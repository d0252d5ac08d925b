"""Asking the owners of a swarm which chunks only disowned peers stand for, for its founder."""

import asyncio
from collections.abc import Sequence

from giaann_p2p.client.visit import Visit
from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.agreeing import Agreed, agreed
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import AskOrphans, OrphansAre, Refused, decode, encode
from giaann_p2p.swarm.withdrawn import MOST, Chunk, fault_of, roots_in

_WITHIN = 10.0
_PATIENCE = 60.0
"""Seconds for owners that still look: they read all that they remember, 64 MiB if nothing else was
said to them."""
_PAUSE = 0.5
_AT_ONCE = 16


async def orphans(visiting: Visit, number: int, patience: float = _PATIENCE) -> Agreed:
    """Ask all owners what they find by the list with this number; return what they agree on."""
    placement = visiting.around.placement(visiting.lookout.time())
    owners = [peer for peer in placement.peers if len(placement.shards_of(peer))]
    return await asked(visiting.place.transport, owners, number, patience)


async def asked(
    transport: Transport, owners: Sequence[Peer], number: int, patience: float
) -> Agreed:
    """Ask some owners."""
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
    """Return what an owner tells, page by page; MessageError for what cannot be."""
    found = dict[Chunk, bytes]()
    page = 0
    while True:
        question = encode(AskOrphans(number, page))
        answer = decode(await transport.call(owner, question, timeout=_WITHIN))
        if isinstance(answer, Refused) and answer.is_busy:
            await asyncio.sleep(_PAUSE)
            continue
        if not isinstance(answer, OrphansAre):
            raise MessageError("no answer to a question for orphans")
        if fault := fault_of(answer.found):
            raise MessageError(f"orphans: {fault}")
        if answer.number != number:  # a newer list: from the beginning
            number, page, found = answer.number, 0, {}
            continue
        found |= roots_in(answer.found)
        page += 1
        if page >= answer.pages:
            return found
        if len(found) >= MOST:
            raise MessageError(f"orphans: more than {MOST:,}")
