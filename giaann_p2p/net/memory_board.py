"""An in-memory peer directory with fault injection, for tests in virtual time.

A posted record stays until it expires, even if its peer has posted a newer one since: readers must
cope with old records. The newest record comes last.
"""

import asyncio
import random
from collections.abc import Callable, Collection

import msgspec

from giaann_p2p.net.errors import Unreachable
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Role


class _Note(msgspec.Struct, frozen=True):
    by: Peer
    role: Role
    record: bytes
    ends: float


class MemoryBoard:
    """The shared directory; each peer uses it through its own `view`. `chance` draws latencies."""

    def __init__(self, chance: random.Random, latency: tuple[float, float] = (0.0, 0.0)) -> None:
        self.latency = latency
        """The minimum and maximum seconds that a look-up or a post takes; may be changed at any
        time."""
        self.looks = self.posts = 0
        """Counts of all look-ups and all posts so far, including failed ones."""
        self._chance = chance
        self._notes: list[_Note] = []
        self._lost: set[Peer] = set()
        self._cut: set[frozenset[Peer]] = set()

    def __repr__(self) -> str:
        return f"<MemoryBoard: {len(self._notes)} records, {len(self._lost)} peers cannot see it>"

    def view(self, me: Peer) -> "View":
        """Return one peer's view of the directory."""
        return View(self, me)

    def lose(self, *peers: Peer, lost: bool = True) -> None:
        """Cut peers off from the whole directory, or reconnect them if not `lost`."""
        self._lost = self._lost | {*peers} if lost else self._lost - {*peers}

    def part(self, one: Peer, other: Peer, parted: bool = True) -> None:
        """Hide two peers' records from each other, or show them again if not `parted`."""
        if parted:
            self._cut.add(frozenset((one, other)))
        else:
            self._cut.discard(frozenset((one, other)))

    def leave(self, by: Peer, role: Role, record: bytes, lifetime: float) -> None:
        """Post a record for `lifetime` seconds at once, without any check of record or sender."""
        now = asyncio.get_running_loop().time()
        self._notes = [note for note in self._notes if note.ends > now]
        self._notes.append(_Note(by, role, record, now + lifetime))

    def seen(self, me: Peer, role: Role) -> list[list[bytes]]:
        """Return a role's records that a peer can see, one list per peer that posted some."""
        now = asyncio.get_running_loop().time()
        left: dict[Peer, list[bytes]] = {}
        for note in self._notes:
            if note.role == role and note.ends > now and {me, note.by} not in self._cut:
                left.setdefault(note.by, []).append(note.record)
        return list(left.values())

    def forget(self) -> None:
        """Do nothing: each look returns all records anyway."""

    async def reach(self, me: Peer) -> None:
        """Wait as long as a request takes; raise Unreachable if this peer is cut off."""
        await asyncio.sleep(self._chance.uniform(*self.latency))
        if me in self._lost:
            raise Unreachable("nobody who keeps the peer directory can be reached")


class View:
    """One peer's view of an in-memory peer directory."""

    def __init__(self, board: MemoryBoard, me: Peer) -> None:
        self._board, self._me = board, me

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        """Post this peer's record for some seconds; raise Unreachable if this peer is cut off."""
        self._board.posts += 1
        await self._board.reach(self._me)
        self._board.leave(self._me, role, record, lifetime)

    def held(self, role: Role) -> list[bytes]:
        """Return nothing: no peer keeps records for others here."""
        return []

    def forget(self) -> None:
        """Pass the call to the board, whose looks return all records anyway."""
        self._board.forget()

    def missed(
        self,
        live: int,
        overdue: Callable[[Role, float], Collection[Peer]],
        strange: Collection[int],
    ) -> bool:
        """Return False: each look returns all records anyway."""
        return False

    async def look(self, role: Role) -> list[list[bytes]]:
        """Return a role's records, one list per peer; raise Unreachable if this peer is cut off."""
        self._board.looks += 1
        await self._board.reach(self._me)
        return self._board.seen(self._me, role)
