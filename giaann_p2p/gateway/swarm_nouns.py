"""The nouns that a swarm knows: listed shard by shard by storage peers, and kept for a minute.

A peer of an earlier release refuses to list its nouns, and a shard may have no peer just now. Then
a search says that it may be incomplete, and finds what the others have.
"""

import asyncio

from giaann_p2p.client.session import Session
from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.gateway.noun_index import NounIndex
from giaann_p2p.gateway.views import Found
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import MOST_NOUNS, AskNouns, Nouns, Refusal, decode, encode

_REFRESH = 60.0
"""Seconds for which a list is used; it is made anew only while somebody searches."""
_WAIT = 10.0
"""Seconds that a search waits for the first list."""
_WITHIN = 5.0
"""Timeout of one request, in seconds."""
_AT_ONCE = 8
"""Maximum number of shards asked for at once."""
_MOST = 1 << 21
"""Maximum number of nouns that are listed, so that no peer fills the memory with invented ones."""


class SwarmNouns:
    """The nouns of a swarm, with their counts."""

    def __init__(self) -> None:
        self._index, self._note = NounIndex(), "the nouns are being listed; search again soon"
        self._listed = float("-inf")
        self._listing: asyncio.Task[None] | None = None

    async def search(self, session: Session, prefix: str, most: int) -> Found:
        """Return nouns that begin with a text, the most frequent first."""
        clock = asyncio.get_running_loop().time
        idle = self._listing is None or self._listing.done()
        if idle and clock() - self._listed > _REFRESH:
            self._listing = asyncio.create_task(self._list(session))
        if self._listing is not None and self._listed < 0:
            await asyncio.wait([self._listing], timeout=_WAIT)
        return self._index.search(prefix, most, self._note)

    async def close(self) -> None:
        """End the listing, if one is under way."""
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.gather(self._listing, return_exceptions=True)

    async def _list(self, session: Session) -> None:
        turns, shards = asyncio.Semaphore(_AT_ONCE), session.manifest.layout.shards

        async def listed(shard: int) -> dict[str, int] | None:
            async with turns:
                return await nouns_of(session, shard)

        found = await asyncio.gather(*map(listed, range(shards)))
        self._index = NounIndex(
            (name, count) for one in found if one for name, count in one.items()
        )
        lacking = sum(one is None for one in found)
        self._note = (
            f"{lacking} of {shards} shards are not listed: no peer serves them now, or"
            " only peers of an earlier release do"
            if lacking
            else ""
        )
        self._listed = asyncio.get_running_loop().time()


async def nouns_of(session: Session, shard: int) -> dict[str, int] | None:
    """Return the nouns of a shard with their counts; None if no peer that serves it lists them."""
    for peer in session.around.ready(shard, session.now):
        try:
            return await _listed_by(session, peer, shard)
        except PeerError:
            continue
    return None


async def _listed_by(session: Session, peer: Peer, shard: int) -> dict[str, int]:
    """Ask one peer for a shard's nouns, page by page; PeerError if it does not send them."""
    found, after = dict[str, int](), ""
    for _ in range(max(1, _MOST // MOST_NOUNS // session.manifest.layout.shards)):
        question = encode(AskNouns(shard, after))
        answer = decode(await session.place.transport.call(peer, question, timeout=_WITHIN))
        if not isinstance(answer, Nouns):
            why = answer.reason if isinstance(answer, Refusal) else "unexpected answer"
            raise MessageError(why)
        names = answer.names
        if not names:
            break
        if len(names) != len(answer.counts) or names != sorted(set(names)) or names[0] <= after:
            raise MessageError("a page of nouns is not in order")
        found |= zip(names, answer.counts, strict=True)
        after = names[-1]
    return found
