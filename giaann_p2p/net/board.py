"""The interface of the peer directory, where peers post their records (`swarm.wire.record`).

Many peers keep the directory, so a record found there may be forged, old or a duplicate; each
reader verifies it. Look-ups return one list per peer that answered, so that a flood of records from
one peer cannot crowd out the records that others returned.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Role


class Board(Protocol):
    """One peer's access to the peer directory."""

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        """Post this peer's record for some seconds; raise Unreachable if no other peer took it."""
        ...

    def held(self, role: Role) -> list[bytes]:
        """Return a role's records that this peer keeps for others; they are verified.

        They may be newer than those that the last look has found.
        """
        ...

    async def look(self, role: Role) -> list[list[bytes]]:
        """Return a role's records, one list per peer that answered; raise Unreachable if none did.

        A board that was looked at before may leave out records that are older than the last look,
        return a new one as a patch of the one before, and of a record that was prolonged since only
        the pulse, or not even that. So it serves one reader only, which calls `missed` after each
        look for all roles. An empty result means that other peers answered, and have no other
        records.
        """
        ...

    def forget(self) -> None:
        """Have the next look return all records, because some of the last were not merged."""
        ...

    def missed(
        self,
        live: int,
        overdue: Callable[[Role, float], Collection[Peer]],
        strange: Collection[int],
    ) -> bool:
        """Note what the last looks left open; return whether the next ones should come soon.

        The reader knows `live` peers. `overdue` returns those of a role whose next sign of life
        was due by a time. `strange` are the buckets in which records are not known.
        """
        ...
