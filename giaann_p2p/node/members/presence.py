"""Posts a peer's own record to the DHT board: on each change, and before the record expires.

1. Changes are batched: at most one post every `Options.post_every` seconds.
2. A record without news is not signed again, but posted with its next pulse (see `OwnRecord`).
   The sequence number of records only grows, across restarts too. The last number is read from the
   board, so the first post follows the first look.
3. A posted record enters this peer's own directory at once.
4. The fields that do not depend on the role are set here; the node of a role adds its own.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import msgspec

from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.members.contact import Contact
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.swarm.members.own_record import OwnRecord
from giaann_p2p.swarm.wire.record import (
    MOST_RECORD_ADDRESSES,
    Announcement,
    PeerState,
    Role,
    next_sequence,
)

Complete = Callable[[Announcement], Announcement]
"""A function that adds a role's own fields to a record."""


class Presence:
    """Keeps a peer's record on the DHT board current, by posting it when needed."""

    def __init__(self, context: Context, lookout: Lookout, role: Role, complete: Complete) -> None:
        self.posts = 0
        """Number of successful posts to the DHT board so far."""
        self._context, self._lookout, self._role, self._complete = context, lookout, role, complete
        self._every, within = context.options.post_every, context.options.look_within
        self._contact = Contact("the peer directory (to announce this peer)", context.log, within)
        self._news = asyncio.Event()
        earlier = context.acquaintances
        self._sequence = earlier.sequence if earlier is not None else 0
        self._record = OwnRecord(context.identity, context.secret)
        self._doubled = False

    def changed(self) -> None:
        """Schedule a post of the record, because its content has changed."""
        self._news.set()

    async def run(self) -> None:
        """Post the record on each change, and at the latest after a third of its lifetime."""
        await self._lookout.whole.wait()
        while True:
            self._news.clear()
            try:
                lifetime = await self._post()
            except Unreachable:
                await asyncio.sleep(self._contact.pause)
                continue
            await asyncio.sleep(self._every)
            with suppress(TimeoutError):
                async with asyncio.timeout(lifetime / 3 - self._every):
                    await self._news.wait()

    async def say(self, state: PeerState) -> None:
        """Post the record once more, with another state; ignore a failure of the DHT board."""
        with suppress(Unreachable):
            await self._post(state)

    async def _post(self, state: PeerState | None = None) -> float:
        """Post the record to the DHT board; return its lifetime in seconds."""
        now = self._context.clock()
        said = self._complete(self._draft(now))
        said = msgspec.structs.replace(said, state=state or said.state)
        record = self._current(said, now)
        self._lookout.learn(record, self._lookout.time())
        await self._contact.reached(self._context.board.post(said.role, record, said.lifetime))
        self.posts += 1
        return said.lifetime

    def _current(self, said: Announcement, now: float) -> bytes:
        """Return a record with this content: the last one with a new pulse, or a new one."""
        last = self._last(said)
        record = self._record.continued(said, now) if last == self._sequence else None
        if record is None:  # e.g. the content changed, or another process announced this peer
            self._sequence = next_sequence(now, last)
            said = msgspec.structs.replace(said, sequence=self._sequence)
            record = self._record.signed(said)
        return record

    def _draft(self, now: float) -> Announcement:
        """Return the record with the fields that are the same for every role."""
        context = self._context
        return Announcement(
            swarm_id=context.manifest.swarm_id,
            peer=context.identity.peer,
            role=self._role,
            incarnation=context.incarnation,
            sequence=0,
            issued=int(now),
            addresses=tuple(context.addresses())[:MOST_RECORD_ADDRESSES],
            token=context.gate.token,
            revoked=context.gate.admission.revoked.number,
            edition=context.gate.editions.number,
        )

    def _last(self, draft: Announcement) -> int:
        """Return the greatest sequence number of this peer's records, here or in the directory."""
        known = self._lookout.view.directory.announcement(draft.peer, draft.role)
        if known is None:
            return self._sequence
        if self.posts and known.incarnation != draft.incarnation and not self._doubled:
            self._doubled = True
            self._context.log.error(
                "another process announces itself as this peer: stop one of the two, or give one a"
                " folder of its own (--data-dir)"
            )
        return max(known.sequence, self._sequence)
