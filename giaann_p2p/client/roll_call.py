"""Asks peers whether they are alive; a killed peer stays in the directory for half a minute."""

import asyncio
from collections.abc import Sequence

from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import DialPaused, Refused
from giaann_p2p.net.patience import called
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.member_messages import AskManifest
from giaann_p2p.swarm.wire.messages import encode

_WITHIN = Settings().call_timeout
"""Timeout of one attempt, in seconds: the same as between peers. It has to cover opening the
connection, which takes half a dozen round trips."""
_TRIES = 3
"""Number of attempts per peer: over a line that loses packets, opening the connection may take
longer than one timeout."""
_AT_ONCE = 64
"""Maximum number of peers asked concurrently."""


async def silent(
    transport: Transport, peers: Sequence[Peer], within: float = _WITHIN, *, soon: bool = False
) -> frozenset[Peer]:
    """Call all peers; return those that do not answer. A refusal counts as an answer.

    With `soon`, a peer that could not be dialled a moment ago counts as silent at once, for callers
    that ask again and again: the network does not redial it for some seconds, so retries only wait.
    """
    turns = asyncio.Semaphore(_AT_ONCE)
    final = (DialPaused,) if soon else ()

    async def answers(peer: Peer) -> bool:
        async with turns:
            try:
                await called(transport, peer, encode(AskManifest()), within, _TRIES, final)
            except Refused:
                return True
            except PeerError:
                return False
            return True

    found = await asyncio.gather(*map(answers, peers))
    return frozenset(peer for peer, there in zip(peers, found, strict=True) if not there)
