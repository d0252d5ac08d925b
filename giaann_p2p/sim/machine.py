"""A simulated machine that runs a real node of `giaann_p2p.node`, and restarts it after a crash.

Each start makes a new event loop, transport and board. So a crash drops all that the node was about
to do, and while the machine is stopped, everything waits.
"""

import asyncio
import logging
import random
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from giaann_p2p.errors import EditionDelayed
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.gate import Gate
from giaann_p2p.node.members.lookout import Lookout
from giaann_p2p.sim.board import SimBoard
from giaann_p2p.sim.loop import MachineLoop
from giaann_p2p.sim.node import RECORD, Node
from giaann_p2p.sim.transport import SimTransport
from giaann_p2p.sim.world import World
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.token import Rights

_LEVELS = {
    logging.INFO: "INFO",
    logging.WARNING: "WARNING",
    logging.ERROR: "ERROR",
}
"""The usual names of log levels, because libraries that happen to be loaded may rename them."""


class RealNode(Protocol):
    """The part of a node that a machine uses."""

    lookout: Lookout

    async def run(self) -> None:
        """Run until the node has left or fails."""
        ...


class Machine(Node):
    """A simulated machine; a subclass makes its node."""

    kind_of_gate = Gate
    """The class of access control that the node gets."""

    def __init__(self, world: World, name: str, skew: float, rights: Rights) -> None:
        self.identity = Identity.from_seed(random.Random(f"{world.seed} {name}").randbytes(32))
        peer = self.identity.peer
        world.admit(peer, rights)
        self._edition: bytes | None = None  # the file with the newest edition, on the disk
        around = world.view_of(peer)
        super().__init__(name, peer, world.clock, world.network, world.trace, around, skew)
        self.world = world
        self.rng = random.Random(f"{world.seed} {name} chance")
        self.log = TraceLog(self.say)
        self.begin()

    def begin(self) -> None:
        """Start a node on this machine, for the first time or after a crash."""
        happen = partial(self._happen, self._life)
        self.loop = MachineLoop(self.clock, happen)
        self.loop.set_exception_handler(self._complain)
        self.transport = SimTransport(self.peer, self.network, self.loop, self.world.token_of)
        self.board = SimBoard(self, self.rng, self.world)
        self.loop.do(self._start)

    @abstractmethod
    def made(self, context: Context) -> RealNode:
        """Return a new node for this machine."""

    def deliver(self, sender: Peer, data: bytes, reply: OnAnswer) -> None:
        """Keep a record for the node's next look at the directory, or pass it a question."""
        if data[:1] == RECORD:
            self.board.hear(sender, data[1:])
        else:
            self.loop.do(partial(self.transport.arrived, sender, data, reply))

    def admits(self, sender: Peer, question: Message) -> bool:
        """Return whether a peer may ask this question, by the token that it shows."""
        token = self.world.token_of(sender)
        return not self.gate.admission.refusal(sender, token, question, self.now)

    def learn_revoked(self, data: bytes) -> None:
        """Give the node a newer list of revoked peers; a dead node gets it at its next start."""

        def learn() -> None:
            self.gate.learn(data)

        self._happen(self._life, partial(self.loop.do, learn))

    def learn_edition(self, data: bytes) -> None:
        """Give the node an edition of the swarm's rules, which it may refuse for a while.

        Nothing reaches a dead node.
        """

        def learn() -> None:
            with suppress(EditionDelayed):  # it still divides its shards for an earlier edition
                self.gate.learn_edition(data)

        self._happen(self._life, partial(self.loop.do, learn))

    def _keep_edition(self, data: bytes) -> None:
        self._edition = data

    def die(self) -> None:
        """Kill the machine at once: all tasks of its node are cancelled."""
        super().die()
        self.transport.closed = True
        self.loop.end()

    def _start(self) -> None:
        token = self.world.token_of(self.peer)
        self.gate = self.kind_of_gate(
            self.world.manifest,
            self.transport,
            token,
            lambda: self.now,
            keep_edition=self._keep_edition,
        )
        revoked = self.world.admission.revoked
        self.gate.recall(revoked.to_bytes() if revoked.number else None)
        self.gate.recall_edition(self._edition)
        self.node = self.made(
            Context(
                identity=self.identity,
                manifest=self.world.manifest,
                transport=self.transport,
                board=self.board,
                gate=self.gate,
                clock=lambda: self.now,
                incarnation=self.rng.getrandbits(63),
                secret=random.Random(f"{self.world.seed} {self.name} {self._life}").randbytes(32),
                log=self.log,
            )
        )
        self.around = self.node.lookout.view
        self._task = self.loop.create_task(self.node.run())
        self._task.add_done_callback(self._ended)

    def ended(self) -> None:
        """React when the node has ended by itself, without an error."""

    def _ended(self, life: "asyncio.Task[None]") -> None:
        if life.cancelled():
            return
        if (error := life.exception()) is not None:
            self.world.promises.broken(f"{self.name} ends: {error!r}")
        else:
            self.ended()

    def _complain(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        what = context.get("exception") or context["message"]
        self.world.promises.broken(f"{self.name} has an error: {what!r}")


class TraceLog(logging.Logger):
    """A node's log, which becomes lines of the trace, each with its level."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__("simulation", logging.INFO)
        self._say = say

    def _log(self, level: int, msg: object, args: object, *rest: object, **more: object) -> None:
        self._say(f"{_LEVELS[level]}: {str(msg) % args if args else msg}")
