"""The peer directory's interface: where peers post their records (see `swarm.wire.record`).

A board is kept by many peers, so a record found on it may be forged, old or a duplicate; each
reader verifies it. Results are grouped by the peer that returned them, so that one peer's flood of
records cannot crowd out the records of the others.
"""

from typing import Protocol

from giaann_p2p.swarm.wire.record import Role


class Board(Protocol):
    """The peer directory as one peer sees it."""

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        """Post this peer's own record for some seconds; Unreachable if no other peer took it."""
        ...

    async def look(self, role: Role) -> list[list[bytes]]:
        """Return the records of a role, one list per peer that answered; Unreachable if none did.

        So an empty result means that other peers answered and know of no record.
        """
        ...
