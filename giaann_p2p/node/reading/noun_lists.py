"""Lists the nouns of shards, as storage peers know them, and finds the most frequent of a swarm.

A prompt without a word that was learned is answered by the columns of the most frequent nouns (see
`model.back_off`). No row says which these are, so every shard is listed, at most every 10 s for all
prompts of a peer. A list is taken from one peer that serves the shard, and not compared with other
peers' lists: a liar can make an answer begin with another noun, but such an answer is marked as
resting on no evidence anyway. The rows that are read after that are compared like any others.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial

from giaann_p2p.errors import MessageError, PeerError, UsageError
from giaann_p2p.model.rows import Answer, noun_rows
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.members.gate import Heard
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import MOST_NOUNS, AskNouns, Nouns, Refusal, decode, encode

_FRESH = 10.0
"""Seconds for which the most frequent nouns are used before they are determined anew."""
_WITHIN = 5.0
"""Timeout of one request, in seconds."""
_PATIENCE, _AGAIN = 10.0, 0.25
"""Seconds to wait for peers that list a shard, and between two attempts: a swarm that has just
started, or lost a peer, has none for a moment."""
_ALL_WITHIN = 20.0
"""Seconds in which all shards must be listed, however many peers hang: a client waits for 45."""
_AT_ONCE = 8
"""Maximum number of shards asked for at once."""
_MOST = 1 << 21
"""Maximum number of nouns that are listed, so that no peer fills the memory with invented ones."""


class FrequentNouns:
    """The most frequent nouns of a swarm, for all prompts of a peer."""

    def __init__(
        self,
        transport: Transport,
        others: PeersView,
        clock: Callable[[], float],
        heard: Heard,
    ) -> None:
        self._transport, self._others, self._clock = transport, others, clock
        self._heard = heard
        self._turn = asyncio.Lock()
        self._kept: Answer = []
        self._most, self._listed = 0, float("-inf")

    async def most(self, number: int) -> Answer:
        """Return the `number` most frequent nouns, as rows without connections.

        Raise Unreachable if a shard's nouns cannot be listed, because some may be more frequent.
        """
        async with self._turn:  # concurrent callers wait for the same list
            now = asyncio.get_running_loop().time()
            if not self._kept or number != self._most or now - self._listed > _FRESH:
                self._kept, self._most = await self._found(number), number
                self._listed = now
            return self._kept

    async def _found(self, number: int) -> Answer:
        layout = self._others.rules.layout
        turns, done = asyncio.Semaphore(_AT_ONCE), set[int]()
        best: dict[str, int] = {}
        time = asyncio.get_running_loop().time
        until = time() + _PATIENCE

        async def listed(shard: int) -> None:
            async with turns:
                asks = not self._is_past(layout)
                found = await self._of_shard(shard, number, layout) if asks else None
                while found is None and time() < until and not self._is_past(layout):
                    await asyncio.sleep(_AGAIN)
                    found = await self._of_shard(shard, number, layout)
            if found is not None:
                best.update(found)
                done.add(shard)

        with suppress(TimeoutError):
            async with asyncio.timeout(_ALL_WITHIN), asyncio.TaskGroup() as group:
                for shard in range(layout.shards):
                    group.create_task(listed(shard))
        if (lacking := layout.shards - len(done)) and self._is_past(layout):
            return await self._found(number)
        if lacking:
            raise Unreachable(
                f"no peer listed the nouns of {lacking} shards; `giaann status` shows which peers"
                " hold them; ask again"
            )
        return noun_rows(best.items(), number)

    def _is_past(self, layout: Layout) -> bool:
        """Return whether a layout's shards were divided, so that no peer lists them any more.

        Lists that were completed before are still valid.
        """
        return layout != self._others.rules.layout

    async def _of_shard(self, shard: int, number: int, layout: Layout) -> dict[str, int] | None:
        peers = self._peers(shard)
        return await nouns_of(self._transport, peers, shard, layout, self._heard, frequent=number)

    def _peers(self, shard: int) -> list[Peer]:
        """Return the peers that serve a shard; those that failed to answer lately come last."""
        now, others = self._clock(), self._others
        ready = others.ready(shard, now)
        return sorted(ready, key=lambda peer: not others.not_suspected(peer, now))


async def nouns_of(
    transport: Transport,
    peers: Iterable[Peer],
    shard: int,
    layout: Layout,
    heard: Heard,
    frequent: int = 0,
) -> dict[str, int] | None:
    """Return the nouns of a layout's shard with their counts; None if none of the peers lists them.

    `heard` receives all answers. If `frequent` is not 0, only that number of the most frequent
    nouns are returned.
    """
    for peer in peers:
        page = partial(_page, transport, peer, layout, heard)
        try:
            if frequent:
                return await page(AskNouns(shard, frequent=frequent))
            return await _listed(page, shard, layout)
        except PeerError:
            continue
        except UsageError:  # the transport was closed meanwhile
            return None
    return None


async def _listed(
    ask: Callable[[AskNouns], Awaitable[dict[str, int]]], shard: int, layout: Layout
) -> dict[str, int]:
    """Ask one peer for a shard's nouns, page by page; PeerError if it does not send them."""
    found, after = dict[str, int](), ""
    for _ in range(max(1, _MOST // MOST_NOUNS // layout.shards)):
        page = await ask(AskNouns(shard, after))
        if not page:
            break
        found |= page
        after = max(page)
    return found


async def _page(
    transport: Transport, peer: Peer, layout: Layout, heard: Heard, question: AskNouns
) -> dict[str, int]:
    """Ask a peer for a page of nouns; raise PeerError if it sends none, or an invalid one.

    A peer whose number of shards differs from the layout's sends none.
    """
    data = encode(question, layout.doublings)
    answer = decode(await transport.call(peer, data, timeout=_WITHIN))
    heard(answer)
    if not isinstance(answer, Nouns):
        raise MessageError(answer.reason if isinstance(answer, Refusal) else "unexpected answer")
    names = answer.names
    if len(names) != len(answer.counts) or names != sorted(set(names)):
        raise MessageError("a page of nouns is not in order")
    if names and names[0] <= question.after:
        raise MessageError("a page of nouns begins before the last one ends")
    if len(names) > (question.frequent or MOST_NOUNS):
        raise MessageError("a page has more nouns than were asked for")
    return dict(zip(names, answer.counts, strict=True))
