"""Where peers leave the records that tell of them (see `swarm.record`), for all who look.

A board is kept by many hands: what is found on it may be anybody's, old, or twice there, and is
proved by whoever reads it. So it is told apart by who brought it: nobody's flood covers what others
bring.
"""

from typing import Protocol

from giaann_p2p.swarm.record import Role


class Board(Protocol):
    """A board as one peer sees it."""

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        """Leave this peer's own record for some seconds; Unreachable if nobody has taken it."""
        ...

    async def look(self, role: Role) -> list[list[bytes]]:
        """Return the records of a role that each who was asked has; Unreachable if nobody was.

        So an empty list says that others were asked, and know of none.
        """
        ...
