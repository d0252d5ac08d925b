"""Asking all storage peers for the digests of their replicas: what `giaann fsck` judges."""

import asyncio
from collections.abc import Sequence

import numpy as np

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.transport import Transport
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.checkup import Report, judged
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.messages import AskDigests, Digest, Digests, Refused, decode, encode
from giaann_p2p.swarm.shardset import packed, unpacked

_WITHIN = 30.0
"""Seconds for one answer; a peer digests about a second's worth of shards for it."""


async def checked(
    transport: Transport, manifest: Manifest, peers: Sequence[Peer], within: float = _WITHIN
) -> Report:
    """Compare all replicas of all shards at these peers."""
    asked = [_told(transport, peer, manifest.layout.shards, within) for peer in peers]
    answers = await asyncio.gather(*asked)
    told = {peer: answer for peer, answer in zip(peers, answers, strict=True) if answer}
    silent = [peer for peer in peers if peer not in told]
    return judged(told, manifest.layout.shards, manifest.replicas, silent)


async def _told(
    transport: Transport, peer: Peer, count: int, within: float
) -> dict[int, Digest] | None:
    """Return what a peer tells of all shards, asked as often as it takes; None if it fails."""
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
    if isinstance(answer, Refused):
        raise MessageError(answer.reason)
    if not isinstance(answer, Digests):
        raise MessageError("no answer to a question for digests")
    shards = unpacked(answer.shards, count)
    first = asked[: len(shards)]
    if not len(shards) or shards.tolist() != first.tolist() or len(answer.found) != len(shards):
        raise MessageError("digests of other shards than the first of those asked for")
    return shards, answer.found
