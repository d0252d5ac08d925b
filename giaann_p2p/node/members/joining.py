"""Joining a swarm: fetches its manifest from any peer, checked by the hash in the join link."""

import asyncio
from collections.abc import Sequence

from giaann_p2p.errors import MessageError, PeerError, UsageError
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.patience import called
from giaann_p2p.net.transport import Transport
from giaann_p2p.swarm.wire.identity import Peer, name_of, to_text
from giaann_p2p.swarm.wire.manifest import Manifest, Versions
from giaann_p2p.swarm.wire.member_messages import AskManifest, ManifestIs
from giaann_p2p.swarm.wire.messages import Refusal, decode, encode

_WITHIN = 6.0
"""Timeout of one try, in seconds: longer than a dial can take (`TransportLimits.dial_within`)."""
_TRIES = 6
"""Number of tries with each peer. On a line that loses one packet in ten, one connection in five
takes over 5 s to set up, and libp2p's pause after a failed dial costs every second try."""


async def joined(
    transport: Transport,
    peers: Sequence[Peer],
    swarm_id: bytes,
    here: Versions,
    *,
    computes: bool = False,
    within: float = _WITHIN,
) -> Manifest:
    """Return the swarm's manifest, from the first peer that answers with it.

    Raise Unreachable if no peer has it, UsageError if the software `here` does not fit the swarm.
    """
    manifest = await fetched(transport, peers, swarm_id, within=within)
    if differences := manifest.differences(here, computes=computes):
        raise UsageError(
            f"this peer does not fit the swarm {manifest.name!r}: {'; '.join(differences)}"
        )
    return manifest


async def fetched(
    transport: Transport, peers: Sequence[Peer], swarm_id: bytes, *, within: float = _WITHIN
) -> Manifest:
    """Ask all peers at once for the manifest; return the first answer with the right hash.

    A peer that stays silent for `within` seconds is asked again, because packets may be lost.
    """
    if not peers:
        raise UsageError("no peer is known that could send the swarm's manifest; get a join link")
    loop = asyncio.get_running_loop()
    asked = {loop.create_task(_asked(transport, peer, swarm_id, within)): peer for peer in {*peers}}
    faults: dict[Peer, str] = {}
    try:
        for answer in asyncio.as_completed(asked):
            found = await answer
            if isinstance(found, Manifest):
                return found
            faults[found[0]] = found[1]
    finally:
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    why = "; ".join(f"{name_of(peer)}: {fault}" for peer, fault in sorted(faults.items()))
    raise Unreachable(
        f"no peer sent the manifest of the swarm {to_text(swarm_id)} ({why}); check that the"
        " peers of the join link are up and can be reached from here, or get a newer link"
    )


async def _asked(
    transport: Transport, peer: Peer, swarm_id: bytes, within: float
) -> Manifest | tuple[Peer, str]:
    try:
        data = await called(transport, peer, encode(AskManifest()), within, _TRIES)
        answer = decode(data)
        if isinstance(answer, Refusal):
            raise MessageError(answer.reason)
        if not isinstance(answer, ManifestIs):
            raise MessageError("its answer is not a manifest")
        return Manifest.read(answer.manifest, swarm_id)
    except PeerError as error:
        return peer, str(error)
