"""A machine that runs a real node of `giaann_p2p.node`, life after life.

The node's event loop, transport and board are made anew for each life. So a crash drops all that
the node was about to do, and while the machine stands still, everything waits.
"""

import asyncio
import logging
import random
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.sim.board import SimBoard
from giaann_p2p.sim.loop import MachineLoop
from giaann_p2p.sim.node import RECORD, Node
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.transport import SimTransport
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.token import Rights

_LEVELS = {
    logging.INFO: "INFO",
    logging.WARNING: "WARNING",
    logging.ERROR: "ERROR",
}
"""The usual names, because libraries that happen to be loaded may rename levels."""


class RealNode(Protocol):
    """What a machine has to know of the node that it runs."""

    lookout: Lookout

    async def run(self) -> None:
        """Run until the node has left or fails."""
        ...


class Machine(Node):
    """A machine; a subclass makes its node."""

    def __init__(self, swarm: Swarm, name: str, skew: float, rights: Rights) -> None:
        self.identity = Identity.from_seed(random.Random(f"{swarm.seed} {name}").randbytes(32))
        peer = self.identity.peer
        swarm.admit(peer, rights)
        around = swarm.view_of(peer)
        super().__init__(name, peer, swarm.clock, swarm.network, swarm.trace, around, skew)
        self.swarm = swarm
        self.rng = random.Random(f"{swarm.seed} {name} chance")
        self.log = TraceLog(self.say)
        self.begin()

    def begin(self) -> None:
        """Start, or restart after a crash."""
        happen = partial(self._happen, self._life)
        self.loop = MachineLoop(self.clock, happen)
        self.loop.set_exception_handler(self._complain)
        self.transport = SimTransport(self.peer, self.network, self.loop, self.swarm.token_of)
        self.board = SimBoard(self)
        self.loop.do(self._start)

    @abstractmethod
    def made(self, context: Context) -> RealNode:
        """Return a new node."""

    def deliver(self, sender: Peer, data: bytes, reply: OnAnswer) -> None:
        """Take a record for the next look at the board, or a question."""
        if data[:1] == RECORD:
            self.board.hear(sender, data[1:])
        else:
            self.loop.do(partial(self.transport.arrived, sender, data, reply))

    def die(self) -> None:
        """End at once."""
        super().die()
        self.transport.closed = True
        self.loop.end()

    def _start(self) -> None:
        token = self.swarm.token_of(self.peer)
        gate = Gate(self.swarm.manifest, self.transport, token, lambda: self.now)
        gate.admission = self.swarm.admission
        self.node = self.made(
            Context(
                identity=self.identity,
                manifest=self.swarm.manifest,
                transport=self.transport,
                board=self.board,
                gate=gate,
                clock=lambda: self.now,
                incarnation=self.rng.getrandbits(63),
                log=self.log,
            )
        )
        self.around = self.node.lookout.view
        self._task = self.loop.create_task(self.node.run())
        self._task.add_done_callback(self._ended)

    def ended(self) -> None:
        """Do what follows when the node has ended by itself, without an error."""

    def _ended(self, life: "asyncio.Task[None]") -> None:
        if life.cancelled():
            return
        if (error := life.exception()) is not None:
            self.swarm.promises.broken(f"{self.name} ends: {error!r}")
        else:
            self.ended()

    def _complain(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        what = context.get("exception") or context["message"]
        self.swarm.promises.broken(f"{self.name} has an error: {what!r}")


class TraceLog(logging.Logger):
    """A node's log, as lines of the trace, each marked by its level."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__("simulation", logging.INFO)
        self._say = say

    def _log(self, level: int, msg: object, args: object, *rest: object, **more: object) -> None:
        self._say(f"{_LEVELS[level]}: {str(msg) % args if args else msg}")
