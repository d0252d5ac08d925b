"""Keeps a peer's directory current: reads the DHT board every few seconds, in small steps.

1. Checking a signature takes 86 µs, so the event loop gets its turn after every few signatures: a
   thousand peers delay nothing. Nor do liars: records are taken from the nodes round robin, and a
   node that returned one record that no honest node stores is ignored for the rest of the look (see
   fair_merge.py).
2. When a look fails, records stay, and soon the clock by which they expire stops (see `PeersView`).
   Then the next successful look first checks all signatures, and merges the records without a
   pause: so no task sees a directory in which all records have expired and only some have come
   back.
3. Nothing may be decided before the first successful look (`whole`). A first look with a wrong
   clock does not succeed (see `swarm/members/clock_fault.py`).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from giaann_p2p.errors import RecordError
from giaann_p2p.net.board import Board
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.members.contact import Contact
from giaann_p2p.node.members.fair_merge import FairMerge
from giaann_p2p.node.options import Options
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.clock_fault import clock_fault
from giaann_p2p.swarm.members.directory import MOST_RECORDS
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.record import Role, read, unproven

_HELPING = 16
"""Number of signatures checked in one turn of the loop: about 1.5 ms."""
_CHEAP = 1 / 32
"""Cost of a record that is known already, in signature checks."""
_COMPLAIN_EVERY = 60.0
_MOST_NAMES = 5


class Lookout:
    """Reads the board periodically, and merges its records into the view."""

    def __init__(
        self,
        board: Board,
        around: PeersView,
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
        """Set by the first successful look."""
        self.judged = asyncio.Event()
        """Set by the first look that shows whether the local clock is right."""
        self.news = asyncio.Event()
        """Set when a storage peer came or went; the task that waits for it clears it."""
        self.refused = 0
        """Number of invalid records so far."""
        self.clock_fault = ""
        """Reason why the local clock must be wrong. A peer with such a clock decides nothing."""
        self.view = around
        self.view.set_record_time(self.time)
        self._board, self._layout, self._swarm_id = board, layout, swarm_id
        self._clock, self._roles, self._restarted = clock, roles, restarted
        self._options = options or Options()
        self._log = log or logging.getLogger("giaann.node")
        self._contact = Contact("the peer directory", self._log, self._options.look_within)
        self._looked = -1.0  # time of the last successful look
        self._peers: frozenset[Peer] = frozenset()
        self._complained = -_COMPLAIN_EVERY
        self._refused_before = 0

    def __repr__(self) -> str:
        return f"<Lookout: {len(self._peers)} storage peers are there>"

    def time(self) -> float:
        """Return the time by which records expire: it stops `grace` seconds after the last look."""
        now = self._clock()
        return min(now, self._looked + self._options.grace) if self.whole.is_set() else now

    async def run(self) -> None:
        """Look periodically until cancelled."""
        while True:
            well = await self.look()
            await asyncio.sleep(self._options.look_every if well else self._contact.pause)

    async def look(self) -> bool:
        """Look at the board once; return whether the look succeeded."""
        try:
            found = [await self._contact.reached(self._board.look(role)) for role in self._roles]
        except Unreachable:
            return False
        if self.whole.is_set() and self._clock() > self._looked + self._options.grace:
            await self._take_at_once([records for brought in found for records in brought])
        else:
            for brought in found:
                await self._take(brought)
        if not self.whole.is_set() and self._has_wrong_clock(found):
            return False
        self._looked = self._clock()
        self.view.looked(self._looked)
        self.whole.set()
        self._tell()
        return True

    def _has_wrong_clock(self, found: Sequence[Sequence[Sequence[bytes]]]) -> bool:
        """Return whether only the wrong local clock hides the other peers; log it once."""
        now = self._clock()
        records = (record for brought in found for some in brought for record in some)
        fault = clock_fault(records, self.view.me, now, self._swarm_id, self._layout)
        if fault and not self.clock_fault:
            self._log.error(fault)
        self.clock_fault = fault
        self.judged.set()
        return bool(fault)

    def learn(self, record: bytes, now: float) -> bool:
        """Merge a record; return whether its signature had to be checked."""
        try:
            return self._learned(record, now)
        except RecordError as error:
            self._refuse(error)
            return True

    def _learned(self, record: bytes, now: float) -> bool:
        return self.view.learn(record, now, self._began_anew) is not None

    def _began_anew(self, peer: Peer) -> None:
        if peer != self.view.me:
            self._restarted(peer)

    async def _take(self, brought: Sequence[Sequence[bytes]]) -> None:
        await self._each(brought, lambda record: self._learned(record, self._clock()))

    async def _take_at_once(self, brought: Sequence[Sequence[bytes]]) -> None:
        """Check all records, a few at a time; then merge the valid ones without a pause."""
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
        """Call `take` for each record until all the work, in signatures, exceeds a bound.

        `take` returns whether it had to check a signature.
        """
        heard, work, pause = FairMerge(brought), 0.0, float(_HELPING)
        for who, record in heard:
            try:
                work += 1 if take(record) else _CHEAP
            except RecordError as error:
                work += 1
                self._refuse(error)
                if self._fits(record):  # its signature is wrong, so no honest node has stored it
                    heard.silence(who)
            if work >= MOST_RECORDS:
                break
            if work >= pause:
                pause = work + _HELPING
                await asyncio.sleep(0)

    def _fits(self, record: bytes) -> bool:
        """Return whether everything but the signature is valid, by the local clock."""
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
            self._log.warning(
                "refused %d records from the peer directory, the last: %s", many, error
            )
            self._complained, self._refused_before = now, self.refused

    def _tell(self) -> None:
        """Log which storage peers came and went."""
        live = self.view.directory.live(self.time())
        storing = {said.peer for said in live if said.role == "storage"} - {self.view.me}
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
