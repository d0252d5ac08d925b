"""Keeps a peer's directory current: reads the DHT board every few seconds, in small steps.

1. Checking a signature takes 86 µs, so the event loop gets a turn after every few signatures, and
   even a thousand peers do not block it. Lying DHT nodes do not either: records are taken from the
   nodes round robin, and a node that returned a forged record is ignored for the rest of the look
   (see `FairMerge`).
2. When looks fail, records stay in the directory, and after a grace time the clock by which they
   expire stops (see `Lookout.time`). The next successful look then checks all signatures first and
   merges the records without a pause. Otherwise other tasks could see a directory in which all
   records have expired and only some have come back.
3. A look may bring only what is new since earlier looks. So after a look that failed or took too
   long, the next one asks for all records (`Board.forget`). It also does so after a pulse of an
   unknown record, but not at every look, and only for the pulse's bucket if that is known.
   After each look the board is told which peers show no sign of life (`Board.missed`); in looks
   that follow soon, it may ask further nodes about these peers.
4. Nothing may be decided before the first successful look (`whole`). A first look with a wrong
   clock does not succeed (see `swarm/members/clock_fault.py`).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence

from giaann_p2p.errors import RecordError
from giaann_p2p.net.board import Board
from giaann_p2p.net.errors import Unreachable
from giaann_p2p.node.members.contact import Contact
from giaann_p2p.node.members.fair_merge import FairMerge
from giaann_p2p.node.options import Options
from giaann_p2p.swarm.members.clock_fault import clock_fault
from giaann_p2p.swarm.members.directory import MOST_RECORDS
from giaann_p2p.swarm.members.entry import VainError
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.patch import is_patch
from giaann_p2p.swarm.wire.pulse import is_bare, is_short
from giaann_p2p.swarm.wire.record import ForgedError, Role, read, unproven

_HELPING = 16
"""Number of signatures checked in one turn of the event loop, which takes about 1.5 ms."""
_CHEAP = 1 / 32
"""Cost of a record that is known already, as a fraction of a signature check."""
_COMPLAIN_EVERY = 60.0
"""Minimum seconds between two log lines on refused records."""
_FEW = 16
"""Number of peers above which looks are less frequent."""
_WHOLE_EVERY = 15.0
"""Minimum seconds between two looks that ask for all records because some are not known: half a
record's lifetime, so that a missed record arrives before its peer's previous one has expired."""
_SOON = 1.0
"""Seconds until the next look, while the board asks further nodes about peers that seem lost."""
_MOST_VAIN = 8
"""Maximum number of short pulses of one node in a look that continue no record's chain. An honest
node may send a few, of records that are not known here and whose ids begin like a known one's."""
_MOST_NAMES = 5
"""Maximum number of peers that one log line names."""


class Lookout:
    """Reads the DHT board periodically, and merges its records into the peer directory."""

    def __init__(
        self,
        board: Board,
        around: PeersView,
        swarm_id: bytes,
        clock: Callable[[], float],
        *,
        roles: Sequence[Role] = ("storage",),
        restarted: Callable[[Peer], None] = lambda peer: None,
        options: Options | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        self.whole = asyncio.Event()
        """Set by the first successful look at the DHT board."""
        self.judged = asyncio.Event()
        """Set by the first look at the DHT board that shows whether the local clock is right."""
        self.news = asyncio.Event()
        """Set when a storage peer came or went; the task that waits for this event clears it."""
        self.refused = 0
        """Number of records refused as invalid so far."""
        self.clock_fault = ""
        """Why the local clock must be wrong; empty if it seems right. A peer with a wrong clock
        decides nothing."""
        self.view = around
        self.view.set_record_time(self.time)
        self._board, self._swarm_id = board, swarm_id
        self._clock, self._roles, self._restarted = clock, roles, restarted
        self._options = options or Options()
        self._log = log or logging.getLogger("giaann.node")
        self._contact = Contact("the peer directory", self._log, self._options.look_within)
        self._looked = -1.0  # time of the last successful look, in seconds since 1970
        self._peers: frozenset[Peer] = frozenset()
        self._live = 0  # peers of all roles
        self._complained = -_COMPLAIN_EVERY
        self._strange, self._asked_again = 0, -_WHOLE_EVERY
        self._misses = False  # whether the board wants to look again soon
        self._refused_before = 0

    def __repr__(self) -> str:
        return f"<Lookout: {len(self._peers)} live storage peers>"

    def time(self) -> float:
        """Return the time against which records expire, in seconds since 1970.

        It stops `Options.grace` seconds after the last successful look at the DHT board.
        """
        now = self._clock()
        return min(now, self._looked + self._options.grace) if self.whole.is_set() else now

    @property
    def is_blind(self) -> bool:
        """Whether looks have failed for longer than the grace time, so that `time` stands still."""
        return self.whole.is_set() and self._clock() > self._looked + self._options.grace

    async def run(self) -> None:
        """Look at the DHT board periodically, until cancelled."""
        while True:
            well = await self.look()
            usual = _SOON if self._misses else interval(self._options, self._live)
            await asyncio.sleep(usual if well else self._contact.pause)

    async def look(self) -> bool:
        """Look at the DHT board once; return whether the look succeeded."""
        if late := self.is_blind:
            self._board.forget()
        try:
            found = [await self._contact.reached(self._board.look(role)) for role in self._roles]
        except Unreachable:
            self._board.forget()
            return False
        if self.is_blind and not late:  # it took so long that whole records are needed
            self._board.forget()
            return False
        if late:
            await self._take_at_once([records for brought in found for records in brought])
        else:
            for brought in found:
                await self._take(brought)
        if not self.whole.is_set() and self._has_wrong_clock(found):
            self._board.forget()
            return False
        strange = self._strangers()
        self._looked = self._clock()
        self.view.looked(self._looked)
        self.whole.set()
        self._tell()
        self._misses = self._board.missed(self._live, self._overdue, strange)
        return True

    def _strangers(self) -> Collection[int]:
        """Return the buckets to be asked for all their records, because they have unknown ones.

        If pulses of unknown records came without a bucket, the next look asks for all records.
        Neither happens more often than once in `_WHOLE_EVERY` seconds, whatever peers send.
        """
        directory, now = self.view.directory, self._clock()
        is_new = directory.strange > self._strange
        is_any = is_new or bool(directory.strange_buckets)
        if not is_any or now < self._asked_again + _WHOLE_EVERY:
            return ()
        found, directory.strange_buckets = directory.strange_buckets, set()
        self._strange, self._asked_again = directory.strange, now
        if is_new:
            self._board.forget()
        return found

    def _overdue(self, role: Role, due: float) -> list[Peer]:
        """Return the other live peers of a role whose next sign of life was due by a time."""
        found = self.view.directory.overdue(role, due, self.time())
        return [peer for peer in found if peer != self.view.me]

    def _has_wrong_clock(self, found: Sequence[Sequence[Sequence[bytes]]]) -> bool:
        """Return whether the local clock is so wrong that it hides other peers; log that once.

        A live peer in the directory shows that it is not. Otherwise a few records are examined, of
        each node of the board as many as of any other, so that no node alone chooses them.
        """
        now, fault = self._clock(), ""
        if not self._sees_others(now):
            heard = FairMerge([records for brought in found for records in brought])
            records = (record for _, record in heard)
            fault = clock_fault(records, self.view.me, now, self._swarm_id, self.view.rules)
        if fault and not self.clock_fault:
            self._log.error(fault)
        self.clock_fault = fault
        self.judged.set()
        return bool(fault)

    def _sees_others(self, now: float) -> bool:
        return any(said.peer != self.view.me for said in self.view.directory.live(now))

    def learn(self, record: bytes, now: float) -> bool:
        """Merge a record into the directory; return whether its signature had to be checked."""
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
            if is_bare(record) or is_short(record) or is_patch(record):  # whole ones were asked for
                return False
            read(record, self._clock(), self._swarm_id, self.view.rules)
            right.append(record)
            return True

        await self._each(brought, check)
        now = self._clock()
        for record in right:
            self.learn(record, now)

    async def _each(
        self, brought: Sequence[Sequence[bytes]], take: Callable[[bytes], bool]
    ) -> None:
        """Call `take` for each record, until that has cost as much as `MOST_RECORDS` signatures.

        `take` returns whether it had to check a signature.
        """
        heard, work, pause = FairMerge(brought), 0.0, float(_HELPING)
        vain = [0] * len(brought)
        for who, record in heard:
            try:
                work += 1 if take(record) else _CHEAP
            except VainError as error:
                work += 1
                vain[who] += 1
                if vain[who] > _MOST_VAIN:
                    self._refuse(error)
                    heard.silence(who)
            except RecordError as error:
                work += 1
                self._refuse(error)
                if isinstance(error, ForgedError) or self._fits(record):
                    heard.silence(who)  # pulse or signature is wrong: no honest node stored it
            if work >= MOST_RECORDS:
                break
            if work >= pause:
                pause = work + _HELPING
                await asyncio.sleep(0)

    def _fits(self, record: bytes) -> bool:
        """Return whether a record is valid, by the local clock, apart from its signature."""
        try:
            unproven(record, self._clock(), self._swarm_id, self.view.rules)
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
        self._live = len(live)
        storing = {said.peer for said in live if said.role == "storage"} - {self.view.me}
        there = frozenset(storing)
        for peers, what in ((there - self._peers, "found"), (self._peers - there, "lost")):
            if peers:
                names = ", ".join(sorted(map(name_of, peers))[:_MOST_NAMES])
                more = " ..." if len(peers) > _MOST_NAMES else ""
                self._log.info(
                    "%s %d storage peers, %d are live: %s%s",
                    what,
                    len(peers),
                    len(there),
                    names,
                    more,
                )
        if there != self._peers:
            self.news.set()
        self._peers = there


def interval(options: Options, peers: int) -> float:
    """Return the seconds between two looks in a swarm with this number of peers."""
    slower = min(options.look_slowest, options.look_every * peers / _FEW)
    return max(options.look_every, slower)
