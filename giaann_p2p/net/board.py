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

        After the first look, a board may leave out records that are older than the last look,
        return a new record as a patch of its predecessor, and return only the pulse of a record
        that was prolonged, or nothing. So it serves one reader only, which calls `missed` after
        looking for all roles. An empty result means that other peers answered, and have no other
        records.
        """
        ...

    def forget(self) -> None:
        """Make the next look return all records, because some of the last were not merged."""
        ...

    def missed(
        self,
        live: int,
        overdue: Callable[[Role, float], Collection[Peer]],
        strange: Collection[int],
    ) -> bool:
        """Note what the last looks did not return; return whether to look again soon.

        `live` is the number of live peers that the reader knows. `overdue` returns a role's peers
        whose next sign of life was due by a given time. `strange` are the buckets that contain
        records unknown to the reader.
        """
        ...
