"""A bootstrap peer in one process, in made-up time."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

from bootstrap.node import BootstrapNode
from giaann_p2p.net.clock import VirtualLoop
from giaann_p2p.net.memory import Network
from giaann_p2p.net.memory_board import MemoryBoard
from giaann_p2p.net.streams import StreamTransport
from giaann_p2p.node.members.acquaintances import Acquaintances
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.gate import Gate
from tests.unit.node.helpers import LIMITS, MANIFEST, identity

ME, ASKER = identity(1).peer, identity(2).peer
Story = Callable[[BootstrapNode, MemoryBoard], Awaitable[None]]


class Boot:
    """The network, the board, the peer and somebody who asks it."""

    def __init__(self, chance: random.Random, known: Path) -> None:
        self.network, self.board = Network(chance), MemoryBoard(chance)
        self.transport = self._transport(ME, chance)
        self.asker = self._transport(ASKER, chance)
        context = Context(
            identity=identity(1),
            manifest=MANIFEST,
            transport=self.transport,
            board=self.board.view(ME),
            gate=Gate(MANIFEST, self.transport),
            acquaintances=Acquaintances(known),
        )
        self.node = BootstrapNode(context)
        self.task = asyncio.create_task(self.node.run())

    def _transport(self, me: bytes, chance: random.Random) -> StreamTransport:
        return StreamTransport(self.network.node(me), LIMITS, lambda: chance.getrandbits(64))

    async def close(self) -> None:
        """End all; nothing may run on."""
        await self.node.close()
        await self.task
        await self.transport.close()
        await self.asker.close()
        await asyncio.sleep(60)
        assert len(asyncio.all_tasks()) == 1


def boot(tell: Callable[[Boot], Awaitable[None]], known: Path) -> None:
    """Run a story with a bootstrap peer."""

    async def main() -> None:
        one = Boot(random.Random(0), known)
        await asyncio.sleep(1)
        await tell(one)
        await one.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())


def booted(story: Story, chance: random.Random) -> None:
    """Run a story that needs no more than the peer and its board."""
    boot(lambda one: story(one.node, one.board), Path("/nonexistent/known-peers.json"))
