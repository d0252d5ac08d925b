"""Asks the owners of a shard which chunks the swarm has learned, and who signed each of them.

1. Each chunk is applied to every shard, also where it adds nothing. So the owners of any one shard
   know all jobs. A chunk counts if a quorum of these owners report it.
2. The authors of a chunk are in the seal of its delta. They count only if they have signed this
   delta; an owner can withhold authors, but not invent them.
3. Owners keep deltas for a limited time. Later nobody knows the authors any more.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from giaann_p2p.client.session import Session
from giaann_p2p.errors import DamagedError, GiaannError, MessageError, PeerError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.set_comparison import words_of
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Compare, Fetch, Fetched, Piece, Refusal, decode, encode
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from giaann_p2p.swarm.wire.voucher import Notary, authors_of

_WITHIN = 5.0
"""Timeout of one request, in seconds."""
_MOST_FETCHED = 1 << 18
"""Bytes of deltas after which an owner ends its answer; the next request asks for the rest."""
_MOST = 1 << 22
"""Maximum number of neurons, and of connections, in a delta that is verified."""
_NOTHING = Applied()

Chunk = tuple[bytes, int]
"""A chunk: its job and its number."""


class Signed(NamedTuple):
    """The answer of one owner about the authors of chunks."""

    authors: dict[Chunk, list[Peer]]
    """The authors of chunks whose delta the owner still has."""
    gone: Applied
    """The chunks whose delta the owner no longer has."""


class RefusedError(PeerError):
    """An owner refuses to name authors, because this client has no right to ask."""


def shard_to_ask(session: Session, usual: int) -> int:
    """Return the usual shard or, if it lacks a quorum of ready peers, another one that has it."""
    quorum, now = session.around.rules.quorum, session.now
    shards: list[int] = [usual, *range(session.around.rules.shards)]
    for shard in shards:
        if len(session.around.ready(shard, now)) >= quorum:
            return shard
    return usual


async def chunks_by_owner(
    session: Session, shard: int, known: Mapping[Peer, Applied]
) -> dict[Peer, Applied]:
    """Return the chunks that each ready peer of a shard reports; silent peers are left out.

    `known`: their earlier answers for this shard, so that only sets that have changed are sent.
    """
    peers = session.around.ready(shard, session.now)
    told = await asyncio.gather(
        *(_chunks_of(session, peer, shard, known.get(peer, _NOTHING)) for peer in peers)
    )
    return {peer: chunks for peer, chunks in zip(peers, told, strict=True) if chunks is not None}


def agreed(told: Iterable[Applied], quorum: int) -> Applied:
    """Return the chunks that a quorum of owners report, without withdrawn ones."""
    seen = [_NOTHING] * quorum  # at i: chunks that i + 1 owners or more report
    for chunks in told:
        for level in reversed(range(1, quorum)):
            seen[level] |= seen[level - 1] & chunks
        seen[0] |= chunks
    return seen[-1].left


async def signed_by(session: Session, peer: Peer, shard: int, wanted: Applied) -> Signed:
    """Ask a peer who signed some chunks; it may answer for only a part of them.

    RefusedError if it refuses this client; another PeerError if it does not answer, or lies.
    """
    rules = session.around.rules
    some = packed(np.array([shard], np.uint16), rules.shards)
    asked = Fetch(some, wanted.to_bytes(), _MOST_FETCHED, remembered=True)
    answer = await _answer(session, peer, asked)
    if isinstance(answer, Refusal) and not answer.is_busy:
        raise RefusedError(answer.reason)
    if not isinstance(answer, Fetched):
        raise MessageError("the answer does not contain deltas")
    authors = await asyncio.to_thread(_authors, session, rules, shard, wanted, answer.updates)
    return Signed(authors, Applied.received(answer.gone) & wanted)


def _authors(
    session: Session, rules: Rules, shard: int, wanted: Applied, pieces: Sequence[Piece]
) -> dict[Chunk, list[Peer]]:
    """Return the authors of some deltas; MessageError if one is not what its authors signed.

    `rules`: the rules by which `shard` and the shards in the answer are numbered.
    """
    manifest = session.manifest
    spec = manifest.spec
    limits = Limits(spec.branches, spec.segments, _MOST, _MOST)
    notary = Notary(manifest.swarm_id, lambda: rules, manifest.redundancy, session.gate.admission)
    found: dict[Chunk, list[Peer]] = {}
    for piece in pieces:
        shards = unpacked(piece.shards, rules.shards)
        if (piece.job, piece.chunk) not in wanted or shards.tolist() != [shard]:
            raise MessageError("an answer has a delta that was not requested")
        try:
            notary.check(
                Update.received(piece.job, piece.chunk, shards, piece.parcel, limits, piece.seal)
            )
        except PeerError:
            raise
        except GiaannError as error:
            raise MessageError(f"a delta is not what its authors signed: {error}") from None
        found[piece.job, piece.chunk] = authors_of(piece.seal)
    return found


async def _chunks_of(session: Session, peer: Peer, shard: int, known: Applied) -> Applied | None:
    """Return the chunks that a peer applied to a shard; None without a replica or an answer."""
    some = packed(np.array([shard], np.uint16), session.around.rules.shards)
    try:
        answer = await _answer(session, peer, Compare(some, [known.digest]))
        word = words_of(answer, [shard], {shard: known}, session.now)[shard]
    except (PeerError, DamagedError):
        return None
    return None if word.state is ReplicaState.ABSENT else word.chunks


async def _answer(session: Session, peer: Peer, question: Message) -> Message:
    data = encode(question, session.around.rules.layout.doublings)
    answer = decode(await session.place.transport.call(peer, data, timeout=_WITHIN))
    session.gate.hear(answer)
    return answer
