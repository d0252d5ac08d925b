"""Retries of calls to a silent peer, because a few lost packets can delay a call by seconds."""

from giaann_p2p.net.errors import NoConnection, TimedOut
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.wire.identity import Peer


async def called(
    transport: Transport, peer: Peer, payload: bytes, within: float, tries: int
) -> bytes:
    """Return a peer's answer, retrying after `within` seconds of silence, `tries` times in all.

    Use this only for idempotent requests. Only silence is retried: any other error, and the silence
    of the last try, is raised. Concurrent calls to a peer share one dial, so a call that joins a
    dial in progress can time out without a dial of its own. Therefore `within` should exceed the
    transport's `dial_within`.
    """
    for _ in range(tries - 1):
        try:
            return await transport.call(peer, payload, timeout=within)
        except (NoConnection, TimedOut):
            continue
    return await transport.call(peer, payload, timeout=within)
