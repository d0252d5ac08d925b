"""Collects the digests of all replicas from the storage peers, and compares them: `giaann fsck`."""

import asyncio
from collections.abc import Sequence

import numpy as np

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.transport import Transport
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.members.checkup import Report, judged
from giaann_p2p.swarm.members.losses import NONE, Losses
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.messages import AskDigests, Digest, Digests, Refusal, decode, encode
from giaann_p2p.swarm.wire.shardset import packed, unpacked

_WITHIN = 30.0
"""Timeout of one answer, in seconds; a peer spends about a second on the digests in it."""


async def checked(
    transport: Transport,
    manifest: Manifest,
    peers: Sequence[Peer],
    within: float = _WITHIN,
    losses: Losses = NONE,
) -> Report:
    """Compare the replicas of all shards at these peers, asking all peers at once."""
    asked = [_told(transport, peer, manifest.layout.shards, within) for peer in peers]
    answers = await asyncio.gather(*asked)
    told = {peer: answer for peer, answer in zip(peers, answers, strict=True) if answer}
    silent = [peer for peer in peers if peer not in told]
    return judged(told, manifest.layout.shards, manifest.replicas, silent, losses)


async def _told(
    transport: Transport, peer: Peer, count: int, within: float
) -> dict[int, Digest] | None:
    """Return a peer's digests of all shards, over as many questions as needed; None if it fails."""
    left: Shards = np.arange(count).astype(np.uint16)
    found: dict[int, Digest] = {}
    try:
        while len(left):
            question = AskDigests(packed(left, count))
            answer = decode(await transport.call(peer, encode(question), timeout=within))
            shards, digests = _read(answer, left, count)
            found.update(zip(shards.tolist(), digests, strict=True))
            left = left[len(shards) :]
    except PeerError:
        return None
    return found


def _read(answer: object, asked: Shards, count: int) -> tuple[Shards, list[Digest]]:
    if isinstance(answer, Refusal):
        raise MessageError(answer.reason)
    if not isinstance(answer, Digests):
        raise MessageError("no answer to a question for digests")
    shards = unpacked(answer.shards, count)
    first = asked[: len(shards)]
    if not len(shards) or shards.tolist() != first.tolist() or len(answer.found) != len(shards):
        raise MessageError("digests of other shards than the first of those asked for")
    return shards, answer.found
