"""Calls that are retried when a peer stays silent: a few lost packets can delay one by seconds."""

from giaann_p2p.net.errors import NoConnection, TimedOut
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.wire.identity import Peer


async def called(
    transport: Transport, peer: Peer, payload: bytes, within: float, tries: int
) -> bytes:
    """Return a peer's answer, retrying after `within` seconds of silence, `tries` times in all.

    Only for idempotent requests. Any error but silence is an answer, too, and is raised at once;
    so is the silence of the last try. Calls share a dial, and one that ends while it waits for an
    old dial has not tried itself: so `within` should exceed the transport's `dial_within`.
    """
    for _ in range(tries - 1):
        try:
            return await transport.call(peer, payload, timeout=within)
        except (NoConnection, TimedOut):
            continue
    return await transport.call(peer, payload, timeout=within)
