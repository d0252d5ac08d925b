"""The nouns that a swarm knows: listed shard by shard by storage peers, and kept for a minute.

A peer of an earlier release refuses to list its nouns, and a shard may have no peer just now. Then
a search finds what the other shards have and what this shard had when it was listed last, says that
it may be incomplete, and has the shard listed again soon: an outage must not outlast itself here.
"""

import asyncio

from giaann_p2p.client.session import Session
from giaann_p2p.errors import MessageError, PeerError, UsageError
from giaann_p2p.gateway.noun_index import NounIndex
from giaann_p2p.gateway.views import Found
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import MOST_NOUNS, AskNouns, Nouns, Refusal, decode, encode

_REFRESH = 60.0
"""Seconds for which a list is used; it is made anew only while somebody searches."""
_AGAIN = 2.0
"""Seconds after which shards that could not be listed are asked for again. Not at each search: a
listing may take many seconds, and searches come with every key that somebody presses."""
_WAIT = 10.0
"""Seconds that a search waits for a list while there is none at all."""
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
        self._kept: dict[int, dict[str, int]] = {}
        """The last list of each shard that was ever listed."""
        self._lacking: list[int] = []
        """The shards that could not be listed when they were asked for last."""
        self._listed = self._tried = float("-inf")
        self._listing: asyncio.Task[None] | None = None

    async def search(self, session: Session, prefix: str, most: int) -> Found:
        """Return nouns that begin with a text, the most frequent first."""
        if (self._listing is None or self._listing.done()) and (shards := self._due(session)):
            self._listing = asyncio.create_task(self._list(session, shards))
        if self._listing is not None and not self._kept:
            await asyncio.wait([self._listing], timeout=_WAIT)
        return self._index.search(prefix, most, self._note)

    def _due(self, session: Session) -> list[int]:
        """Return the shards that are to be listed now."""
        now = asyncio.get_running_loop().time()
        if now - self._listed > _REFRESH:
            return list(range(session.manifest.layout.shards))
        return self._lacking if now - self._tried > _AGAIN else []

    async def close(self) -> None:
        """End the listing, if one is under way."""
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.gather(self._listing, return_exceptions=True)

    async def _list(self, session: Session, shards: list[int]) -> None:
        """List some shards; those that cannot be listed keep the list that they had."""
        turns, clock = asyncio.Semaphore(_AT_ONCE), asyncio.get_running_loop().time

        async def listed(shard: int) -> dict[str, int] | None:
            async with turns:
                return await nouns_of(session, shard)

        answers = await asyncio.gather(*map(listed, shards))
        found = {at: one for at, one in zip(shards, answers, strict=True) if one is not None}
        self._lacking, self._tried = [at for at in shards if at not in found], clock()
        every = session.manifest.layout.shards
        if len(shards) == every:
            self._listed = clock()
        if found:
            self._kept |= found
            nouns = (noun for one in self._kept.values() for noun in one.items())
            self._index = NounIndex(nouns)
        self._note = _note(len(self._lacking), every) if self._lacking else ""


def _note(lacking: int, shards: int) -> str:
    return (
        f"{lacking} of {shards} shards could not be listed just now, and their nouns may be missing"
        " or old: no peer serves these shards, or only peers of an earlier release do"
    )


async def nouns_of(session: Session, shard: int) -> dict[str, int] | None:
    """Return the nouns of a shard with their counts; None if no peer that serves it lists them."""
    for peer in session.around.ready(shard, session.now):
        try:
            return await _listed_by(session, peer, shard)
        except PeerError:
            continue
        except UsageError:  # the session ended meanwhile
            return None
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
