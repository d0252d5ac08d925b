"""The peer directory as a machine sees it: what reachable machines know, then what it is sent.

The first look of a life returns the records of all machines that are reached. Each record that is
posted later is sent to every machine, and may be lost on its way. A look returns what has arrived
since the look before it, one list per sender.
"""

import asyncio
from typing import TYPE_CHECKING

from giaann_p2p.net.errors import Unreachable
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Role

if TYPE_CHECKING:
    from giaann_p2p.sim.machine import Machine

_TAKES = 0.05
"""The most seconds that a look or a post takes."""


class SimBoard:
    """The board of one life of a machine."""

    def __init__(self, machine: "Machine") -> None:
        self._machine, self._swarm = machine, machine.swarm
        self._looked = set[Role]()
        self._heard: dict[Peer, list[bytes]] = {}
        """The records that have arrived since the last look, by sender."""

    def hear(self, sender: Peer, record: bytes) -> None:
        """Keep a record for the next look."""
        self._heard.setdefault(sender, []).append(record)

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        """Send this peer's record to all machines; Unreachable if there is none to be reached."""
        await self._reach()
        self._swarm.publish(self._machine, record)

    async def look(self, role: Role) -> list[list[bytes]]:
        """Return records, one list per machine; Unreachable if none is reached.

        Records of all roles are returned, because a node takes any that it finds.
        """
        await self._reach()
        found, self._heard = list(self._heard.values()), {}
        if role not in self._looked:
            self._looked.add(role)
            found += self._swarm.records_seen_from(self._machine)
        return found

    async def _reach(self) -> None:
        if self._machine.alive:  # it is not when a dead machine's tasks are cancelled
            await asyncio.sleep(_TAKES * self._machine.rng.random())
        if not self._machine.alive or not self._swarm.is_heard(self._machine):
            raise Unreachable("no machine with a part of the peer directory can be reached")
