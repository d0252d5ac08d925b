"""Retries of calls to a silent peer, because a few lost packets can delay a call by seconds."""

import asyncio

from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import NoConnection, TimedOut
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.wire.identity import Peer


async def called(
    transport: Transport,
    peer: Peer,
    payload: bytes,
    within: float,
    tries: int,
    final: tuple[type[PeerError], ...] = (),
) -> bytes:
    """Return a peer's answer, starting a try every `within` seconds while the peer is silent.

    Use this only for idempotent requests. Silence is a `NoConnection` or `TimedOut`; it is raised
    only by the last of `tries`, or if it is in `final`. Any other error is raised at once.
    Concurrent calls to a peer share one dial, so a call that joins a dial in progress can time out
    without a dial of its own. Therefore `within` should exceed the transport's `dial_within`. It
    should also exceed the pause after a failed dial during which libp2p refuses to dial again.
    """
    clock = asyncio.get_running_loop().time
    for _ in range(tries - 1):
        began = clock()
        try:
            return await transport.call(peer, payload, timeout=within)
        except final:
            raise
        except (NoConnection, TimedOut):
            await asyncio.sleep(began + within - clock())
    return await transport.call(peer, payload, timeout=within)
