"""The peer directory as a machine sees it: first the records that others know, then new records.

The first look after a start also returns all records that the reachable machines know. Each record
that is posted later is sent to every machine, and may be lost on its way. Each look returns the
records that have arrived since the previous look, one list per sender.
"""

import asyncio
import random
from collections.abc import Callable, Collection

from giaann_p2p.net.errors import Unreachable
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.world import World
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Role

_TAKES = 0.05
"""The most virtual seconds that a look at the directory, or a post to it, takes."""


class SimBoard:
    """The peer directory as a machine sees it between one start and its next crash."""

    def __init__(self, machine: Node, rng: random.Random, world: World) -> None:
        self._machine, self._rng, self._world = machine, rng, world
        self._looked = set[Role]()
        self._heard: dict[Peer, list[bytes]] = {}
        """The records that have arrived since the last look at the directory, by sender."""

    def hear(self, sender: Peer, record: bytes) -> None:
        """Keep a record from another machine for the next look at the directory."""
        self._heard.setdefault(sender, []).append(record)

    async def post(self, role: Role, record: bytes, lifetime: float) -> None:
        """Send this peer's record to all machines; Unreachable if no machine can be reached."""
        await self._reach()
        self._world.publish(self._machine, record)

    def held(self, role: Role) -> list[bytes]:
        """Return nothing: no peer keeps records for others here."""
        return []

    def forget(self) -> None:
        """Do nothing: each record is sent whole, not as a patch to an earlier one."""

    def missed(
        self,
        live: int,
        overdue: Callable[[Role, float], Collection[Peer]],
        strange: Collection[int],
    ) -> bool:
        """Return False: a record that is lost on its way is sent again later."""
        return False

    async def look(self, role: Role) -> list[list[bytes]]:
        """Return records, one list per machine; Unreachable if no machine can be reached.

        Records of all roles are returned, because a node takes any that it finds.
        """
        await self._reach()
        found, self._heard = list(self._heard.values()), {}
        if role not in self._looked:
            self._looked.add(role)
            found += self._world.records_seen_from(self._machine)
        return found

    async def _reach(self) -> None:
        if self._machine.alive:  # false while a dead machine's tasks are cancelled
            await asyncio.sleep(_TAKES * self._rng.random())
        if not self._machine.alive or not self._world.is_heard(self._machine):
            raise Unreachable("no machine with a part of the peer directory can be reached")
