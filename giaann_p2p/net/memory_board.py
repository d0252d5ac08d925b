"""A board in one process, and all that can go wrong with one: for tests, in made-up time.

Every record that was left is there until its time is up, the newest last, also when its peer has
left another one since: readers must cope with that.
"""

import asyncio
import random

import msgspec

from giaann_p2p.net.errors import Unreachable
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.record import Role


class _Note(msgspec.Struct, frozen=True):
    by: Peer
    role: Role
    record: bytes
    ends: float


class MemoryBoard:
    """What all peers see, each by its own `view`; `chance` decides how long a peer takes."""

    def __init__(self, chance: random.Random, latency: tuple[float, float] = (0.0, 0.0)) -> None:
        self.latency = latency
        """Least and most seconds that a look or a post takes; may be changed at any time."""
        self.looks = self.posts = 0
        """So far, also those that failed."""
        self._chance = chance
        self._notes: list[_Note] = []
        self._lost: set[Peer] = set()
        self._cut: set[frozenset[Peer]] = set()

    def __repr__(self) -> str:
        return f"<MemoryBoard: {len(self._notes)} records, {len(self._lost)} peers cannot see it>"

    def view(self, me: Peer) -> "View":
        """Return the board as one peer sees it."""
        return View(self, me)

    def lose(self, *peers: Peer, lost: bool = True) -> None:
        """Let peers find nobody who keeps the board, or find it again."""
        self._lost = self._lost | {*peers} if lost else self._lost - {*peers}

    def part(self, one: Peer, other: Peer, parted: bool = True) -> None:
        """Let two peers see nothing of each other, or see each other again."""
        if parted:
            self._cut.add(frozenset((one, other)))
        else:
            self._cut.discard(frozenset((one, other)))

    def leave(self, by: Peer, role: Role, record: bytes, lifetime: float) -> None:
        """Leave a record at once, whatever it is and whoever asks."""
        now = asyncio.get_running_loop().time()
        self._notes = [note for note in self._notes if note.ends > now]
        self._notes.append(_Note(by, role, record, now + lifetime))

    def seen(self, me: Peer, role: Role) -> list[list[bytes]]:
        """Return what a peer can see, at once, by who left it."""
        now = asyncio.get_running_loop().time()
        left: dict[Peer, list[bytes]] = {}
        for note in self._notes:
            if note.role == role and note.ends > now and {me, note.by} not in self._cut:
                left.setdefault(note.by, []).append(note.record)
        return list(left.values())

    async def reach(self, me: Peer) -> None:
        """Take as long as it takes to reach the board; Unreachable if it cannot be reached."""
        await asyncio.sleep(self._chance.uniform(*self.latency))
        if me in self._lost:
            raise Unreachable("nobody who keeps the board can be reached")


class View:
    """The board as one peer sees it."""

    def __init__(self, board: MemoryBoard, me: Peer) -> None:
        self._board, self._me = board, me

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        """Leave this peer's own record for some seconds; Unreachable if nobody has taken it."""
        self._board.posts += 1
        await self._board.reach(self._me)
        self._board.leave(self._me, role, record, lifetime)

    async def look(self, role: Role) -> list[list[bytes]]:
        """Return the records of a role that each has left; Unreachable if nobody could be asked."""
        self._board.looks += 1
        await self._board.reach(self._me)
        return self._board.seen(self._me, role)
