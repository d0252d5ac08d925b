"""The nouns that a swarm knows: listed shard by shard by storage peers, and kept for a minute.

A peer of an earlier release refuses to list its nouns, and a shard may have no peer just now. Then
a search finds what the other shards have and what this shard had when it was listed last, and says
that it may be incomplete. The shard is listed again soon, so that searches are complete when the
outage ends. When the number of shards doubles, the lists of the former shards are forgotten.
"""

import asyncio

from giaann_p2p.client.session import Session
from giaann_p2p.gateway.noun_index import NounIndex
from giaann_p2p.gateway.views import Found
from giaann_p2p.node.reading.noun_lists import nouns_of
from giaann_p2p.store.layout import Layout

_REFRESH = 60.0
"""Seconds for which a list is used; it is made anew only while somebody searches."""
_AGAIN = 2.0
"""Seconds after which shards that could not be listed are asked for again. Not at each search: a
listing may take many seconds, and searches come with every key that somebody presses."""
_WAIT = 10.0
"""Seconds that a search waits for a list while there is none at all."""
_AT_ONCE = 8
"""Maximum number of shards asked for at once."""


class SwarmNouns:
    """The nouns of a swarm, with their counts."""

    def __init__(self) -> None:
        self._index, self._note = NounIndex(), "the nouns are being listed; search again soon"
        self._kept: dict[int, dict[str, int]] = {}
        """The last list of each shard that was ever listed."""
        self._counted = 0
        """The total number of shards when these lists were made."""
        self._lacking: list[int] = []
        """The shards that could not be listed when they were asked for last."""
        self._listed = self._tried = float("-inf")
        self._listing: asyncio.Task[None] | None = None

    async def search(self, session: Session, prefix: str, most: int) -> Found:
        """Return nouns that begin with a text, the most frequent first."""
        layout = session.around.rules.layout
        if (self._listing is None or self._listing.done()) and (shards := self._due(layout)):
            self._listing = asyncio.create_task(self._list(session, shards, layout))
        if self._listing is not None and not self._kept:
            await asyncio.wait([self._listing], timeout=_WAIT)
        return self._index.search(prefix, most, self._note)

    def _due(self, layout: Layout) -> list[int]:
        """Return the shards that must be listed now."""
        now, every = asyncio.get_running_loop().time(), list(range(layout.shards))
        if now - self._listed > _REFRESH:
            return every
        if now - self._tried <= _AGAIN:
            return []
        return self._lacking if layout.shards == self._counted else every

    async def close(self) -> None:
        """End the listing, if one is under way."""
        if self._listing is not None:
            self._listing.cancel()
            await asyncio.gather(self._listing, return_exceptions=True)

    async def _list(self, session: Session, shards: list[int], layout: Layout) -> None:
        """List some shards; those that cannot be listed keep the list that they had."""
        turns, clock = asyncio.Semaphore(_AT_ONCE), asyncio.get_running_loop().time

        async def listed(shard: int) -> dict[str, int] | None:
            async with turns:
                peers = session.around.ready(shard, session.now)
                transport, heard = session.place.transport, session.gate.hear
                return await nouns_of(transport, peers, shard, layout, heard)

        answers = await asyncio.gather(*map(listed, shards))
        found = {at: one for at, one in zip(shards, answers, strict=True) if one is not None}
        then = session.around.rules.layout
        if len(found) < len(shards) and then != layout:  # they were divided meanwhile
            await self._list(session, [*range(then.shards)], then)
            return
        self._lacking, self._tried = [at for at in shards if at not in found], clock()
        if len(shards) == layout.shards:
            self._listed = clock()
        if found:
            if self._counted != layout.shards:  # older lists are of undivided shards
                self._kept, self._counted = {}, layout.shards
            self._kept |= found
            nouns = (noun for one in self._kept.values() for noun in one.items())
            self._index = NounIndex(nouns)
        self._note = _note(len(self._lacking), layout.shards) if self._lacking else ""


def _note(lacking: int, shards: int) -> str:
    return (
        f"{lacking} of {shards} shards could not be listed just now, and their nouns may be missing"
        " or old: no peer serves these shards, or only peers of an earlier release do"
    )
