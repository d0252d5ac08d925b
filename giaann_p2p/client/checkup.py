"""Collects the digests of all replicas from the storage peers and compares them (`giaann fsck`)."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.members.gate import Heard
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.swarm.members.checkup import Report, judged
from giaann_p2p.swarm.members.losses import NONE, Losses
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.messages import AskDigests, Digest, Digests, Refusal, decode, encode
from giaann_p2p.swarm.wire.shardset import packed, unpacked

if TYPE_CHECKING:
    from giaann_p2p.client.session import Session

_WITHIN = 30.0
"""Timeout of one request, in seconds. A peer needs about a second to compute one answer."""


async def checked(
    transport: Transport,
    rules: Rules,
    peers: Sequence[Peer],
    within: float = _WITHIN,
    losses: Losses = NONE,
    heard: Heard = lambda answer: None,
) -> Report:
    """Ask all `peers` at once for the digests of all shards, and compare the replicas.

    `within` is the timeout of each request, in seconds. `losses` are copied into the report, and
    `heard` receives all answers.
    """
    told = await digests_of(transport, rules, peers, within, heard)
    silent = [peer for peer in peers if peer not in told]
    return judged(told, rules.shards, rules.replicas, silent, losses)


async def checked_now(session: "Session") -> Report:
    """Compare the replicas at all storage peers that a session knows.

    If a peer reports that the number of shards has doubled, all peers are asked again.
    """
    while True:
        transport, rules = session.place.transport, session.around.rules
        peers, losses = session.storage_peers(), session.losses()
        report = await checked(transport, rules, peers, losses=losses, heard=session.gate.hear)
        if session.around.rules.shards == rules.shards:
            return report


async def digests_of(
    transport: Transport,
    rules: Rules,
    peers: Sequence[Peer],
    within: float = _WITHIN,
    heard: Heard = lambda answer: None,
) -> dict[Peer, dict[int, Digest]]:
    """Ask all `peers` at once for the digests of all shards; leave out those that do not answer.

    `heard` receives all answers.
    """
    asked = [_told(transport, peer, rules.layout, within, heard) for peer in peers]
    answers = await asyncio.gather(*asked)
    return {peer: answer for peer, answer in zip(peers, answers, strict=True) if answer}


async def _told(
    transport: Transport, peer: Peer, layout: Layout, within: float, heard: Heard
) -> dict[int, Digest] | None:
    """Return a peer's digests of all shards, in as many requests as needed; None if one fails.

    A peer whose number of shards differs from that of the layout returns no digests.
    """
    left: Shards = np.arange(layout.shards).astype(np.uint16)
    found: dict[int, Digest] = {}
    try:
        while len(left):
            question = encode(AskDigests(packed(left, layout.shards)), layout.doublings)
            answer = decode(await transport.call(peer, question, timeout=within))
            heard(answer)
            shards, digests = _read(answer, left, layout.shards)
            found.update(zip(shards.tolist(), digests, strict=True))
            left = left[len(shards) :]
    except PeerError:
        return None
    return found


def _read(answer: object, asked: Shards, count: int) -> tuple[Shards, list[Digest]]:
    """Return the shards that an answer covers, with their digests; MessageError if it is invalid.

    An answer must cover a non-empty prefix of the shards `asked`. `count`: all shards of the swarm.
    """
    if isinstance(answer, Refusal):
        raise MessageError(answer.reason)
    if not isinstance(answer, Digests):
        raise MessageError("the answer does not contain digests")
    shards = unpacked(answer.shards, count)
    first = asked[: len(shards)]
    if not len(shards) or shards.tolist() != first.tolist() or len(answer.found) != len(shards):
        raise MessageError("the digests are not those of the shards that were asked for")
    return shards, answer.found
