"""The interface of the peer directory, where peers post their records (`swarm.wire.record`).

Many peers keep the directory, so a record found there may be forged, old or a duplicate; each
reader verifies it. Look-ups return one list per peer that answered, so that a flood of records from
one peer cannot crowd out the records that others returned.
"""

from typing import Protocol

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
        and return only the bare pulse of a record that was prolonged since. So it serves one reader
        only. An empty result means that other peers answered, and have no other records.
        """
        ...

    def forget(self) -> None:
        """Have the next look return all records, because some of the last were not merged."""
        ...
