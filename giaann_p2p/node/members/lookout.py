"""Keeping a peer's directory current: a look at the board every few seconds, in small helpings.

1. A record's signature takes 86 µs, so after a few the loop has its turn: a thousand peers hold
   nothing up. Nor do liars: what each node brought is taken in turn, and who brought one record
   that no honest node has is not heard on (see hearsay.py).
2. When a look fails, what is known stays, and soon its time stands still (see `outlook`). The first
   look that goes well again is taken in at one stroke, its signatures checked before: nobody sees
   a directory in which all have ended and some have come back.
3. Before the first look that went well nothing is known, and nothing is to be decided: `whole`.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from giaann_p2p.errors import RecordError
from giaann_p2p.net.board import Board
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.contact import Contact
from giaann_p2p.node.hearsay import Hearsay
from giaann_p2p.node.options import Options
from giaann_p2p.node.outlook import Outlook
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.directory import MOST_RECORDS
from giaann_p2p.swarm.identity import Peer, name_of
from giaann_p2p.swarm.record import Role, read, unproven
from giaann_p2p.swarm.surroundings import Surroundings

_HELPING = 16
"""Signatures between two turns of the loop: about a millisecond and a half."""
_CHEAP = 1 / 32
"""What a record that says nothing new takes, in signatures."""
_COMPLAIN_EVERY = 60.0
_MOST_NAMES = 5


class Lookout:
    """See the module."""

    def __init__(
        self,
        board: Board,
        around: Surroundings,
        layout: Layout,
        swarm_id: bytes,
        clock: Callable[[], float],
        *,
        roles: Sequence[Role] = ("storage",),
        restarted: Callable[[Peer], None] = lambda peer: None,
        options: Options | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        self.whole = asyncio.Event()
        """Set with the first look that goes well."""
        self.news = asyncio.Event()
        """Set when somebody came or went; to be cleared by the one who waits for it."""
        self.refused = 0
        """Records so far that cannot be right."""
        self.others = Outlook(around, self.time)
        self._board, self._around, self._layout, self._swarm_id = board, around, layout, swarm_id
        self._clock, self._roles, self._restarted = clock, roles, restarted
        self._options = options or Options()
        self._log = log or logging.getLogger("giaann.node")
        self._contact = Contact("the board of the swarm", self._log, self._options.look_within)
        self._looked = -1.0  # when a look went well
        self._peers: frozenset[Peer] = frozenset()
        self._complained = -_COMPLAIN_EVERY
        self._refused_before = 0

    def __repr__(self) -> str:
        return f"<Lookout: {len(self._peers)} storage peers are there>"

    def time(self) -> float:
        """Return the time that records go by."""
        now = self._clock()
        return min(now, self._looked + self._options.grace) if self.whole.is_set() else now

    async def run(self) -> None:
        """Look again and again."""
        while True:
            well = await self.look()
            await asyncio.sleep(self._options.look_every if well else self._contact.pause)

    async def look(self) -> bool:
        """Look once; tell whether it went well."""
        try:
            found = [await self._contact.reached(self._board.look(role)) for role in self._roles]
        except Unreachable:
            return False
        if self.whole.is_set() and self._clock() > self._looked + self._options.grace:
            await self._take_at_once([records for brought in found for records in brought])
        else:
            for brought in found:
                await self._take(brought)
        self._looked = self._clock()
        self._around.looked(self._looked)
        self.whole.set()
        self._tell()
        return True

    def learn(self, record: bytes, now: float) -> bool:
        """Take a record in; tell whether it was work."""
        try:
            return self._learned(record, now)
        except RecordError as error:
            self._refuse(error)
            return True

    def _learned(self, record: bytes, now: float) -> bool:
        return self._around.learn(record, now, self._began_anew) is not None

    def _began_anew(self, peer: Peer) -> None:
        if peer != self._around.me:
            self._restarted(peer)

    async def _take(self, brought: Sequence[Sequence[bytes]]) -> None:
        await self._each(brought, lambda record: self._learned(record, self._clock()))

    async def _take_at_once(self, brought: Sequence[Sequence[bytes]]) -> None:
        """Check all, a helping at a time; then let time leap, and take in what is right."""
        right = []

        def check(record: bytes) -> bool:
            read(record, self._clock(), self._swarm_id, self._layout)
            right.append(record)
            return True

        await self._each(brought, check)
        now = self._clock()
        for record in right:
            self.learn(record, now)

    async def _each(
        self, brought: Sequence[Sequence[bytes]], take: Callable[[bytes], bool]
    ) -> None:
        """Do something with each record that tells whether it was work, as long as it is not too
        much work in all."""
        heard, work, pause = Hearsay(brought), 0.0, float(_HELPING)
        for who, record in heard:
            try:
                work += 1 if take(record) else _CHEAP
            except RecordError as error:
                work += 1
                self._refuse(error)
                if self._fits(record):  # its signature is wrong, which no honest node has taken
                    heard.silence(who)
            if work >= MOST_RECORDS:
                break
            if work >= pause:
                pause = work + _HELPING
                await asyncio.sleep(0)

    def _fits(self, record: bytes) -> bool:
        """Tell whether all is right that depends on the clock, which may be wrong here."""
        try:
            unproven(record, self._clock(), self._swarm_id, self._layout)
        except RecordError:
            return False
        return True

    def _refuse(self, error: RecordError) -> None:
        self.refused += 1
        now = self._clock()
        if now - self._complained >= _COMPLAIN_EVERY:
            many = self.refused - self._refused_before
            self._log.warning("refused %d records from the board, the last: %s", many, error)
            self._complained, self._refused_before = now, self.refused

    def _tell(self) -> None:
        """Say who came and who is gone."""
        live = self._around.directory.live(self.time())
        storing = {said.peer for said in live if said.role == "storage"} - {self._around.me}
        there = frozenset(storing)
        for peers, what in ((there - self._peers, "found"), (self._peers - there, "lost")):
            if peers:
                names = ", ".join(sorted(map(name_of, peers))[:_MOST_NAMES])
                more = " ..." if len(peers) > _MOST_NAMES else ""
                self._log.info(
                    "%s %d storage peers, %d are there: %s%s",
                    what,
                    len(peers),
                    len(there),
                    names,
                    more,
                )
        if there != self._peers:
            self.news.set()
        self._peers = there
