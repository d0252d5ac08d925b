"""A peer's own record on the board: posted when something changes, and before it ends.

1. Changes are gathered: at most one post a second.
2. A record's sequence only grows, across restarts too: the last one is found on the board, so the
   first post comes after the first look.
3. What is posted is in the own directory at once.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import msgspec

from giaann_p2p.net.board import Board
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.contact import Contact
from giaann_p2p.node.lookout import Lookout
from giaann_p2p.node.options import Options
from giaann_p2p.swarm.identity import Identity
from giaann_p2p.swarm.record import Announcement, State, next_sequence, signed


class Presence:
    """See the module."""

    def __init__(
        self,
        identity: Identity,
        board: Board,
        lookout: Lookout,
        draft: Callable[[], Announcement],
        clock: Callable[[], float],
        *,
        last: int = 0,
        options: Options | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        """Take `draft`, which says what is to be said now; its sequence and time are set here.

        `last` is no less than any sequence of an earlier life, as far as that is known.
        """
        self.posts = 0
        """So far, those that somebody has taken."""
        self._identity, self._board, self._lookout = identity, board, lookout
        self._draft, self._clock = draft, clock
        self._options = options or Options()
        self._log = log or logging.getLogger("giaann.node")
        within = self._options.look_within
        self._contact = Contact("the board, for the own record,", self._log, within)
        self._news = asyncio.Event()
        self._sequence = last
        self._doubled = False

    def changed(self) -> None:
        """Post anew, soon: what is to be said is another thing now."""
        self._news.set()

    async def run(self) -> None:
        """Post again and again."""
        await self._lookout.whole.wait()
        while True:
            self._news.clear()
            try:
                lifetime = await self._post()
            except Unreachable:
                await asyncio.sleep(self._contact.pause)
                continue
            await asyncio.sleep(self._options.post_every)
            with suppress(TimeoutError):
                async with asyncio.timeout(lifetime / 3 - self._options.post_every):
                    await self._news.wait()

    async def say(self, state: State) -> None:
        """Post once more, in another state, if the board takes it."""
        with suppress(Unreachable):
            await self._post(state)

    async def _post(self, state: State | None = None) -> float:
        """Post what is to be said; return how long it counts."""
        draft = self._draft()
        last = self._last(draft)
        now = self._clock()
        self._sequence = next_sequence(now, last)
        said = msgspec.structs.replace(
            draft, sequence=self._sequence, issued=int(now), state=state or draft.state
        )
        record = signed(self._identity, said)
        self._lookout.learn(record, self._lookout.time())
        await self._contact.reached(self._board.post(said.role, record, said.lifetime))
        self.posts += 1
        return said.lifetime

    def _last(self, draft: Announcement) -> int:
        """Return the greatest sequence that anybody knows of this peer."""
        known = self._lookout.others.around.directory.announcement(draft.peer, draft.role)
        if known is None:
            return self._sequence
        if self.posts and known.incarnation != draft.incarnation and not self._doubled:
            self._doubled = True
            self._log.error(
                "somebody else announces itself as this peer: stop one of the two, or give it an"
                " identity of its own"
            )
        return max(known.sequence, self._sequence)
