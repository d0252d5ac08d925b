"""A simulated storage peer that runs the real node, with its store writer, reception and lookout.

The founder's newer lists reach it only at a restart.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from giaann_p2p.errors import PeerError
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.node.members.context import Context
from giaann_p2p.sim.checked import CheckedNode
from giaann_p2p.sim.machine import Machine
from giaann_p2p.sim.node import RECORD, readable
from giaann_p2p.sim.owner import USUAL, Kind, Owner
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Message, Push, Read, decode
from giaann_p2p.swarm.wire.token import Rights

_LEAST_LOG = 1 << 14
"""The bytes of a log from which on it is replaced by a snapshot; a real store waits for more."""


class StorageMachine(Machine, Owner):
    """A machine with a storage peer; each write takes its disk's delay."""

    node: CheckedNode

    def __init__(self, swarm: Swarm, name: str, skew: float, kind: Kind = USUAL) -> None:
        self.equip(swarm, kind)
        super().__init__(swarm, name, skew, Rights.STORAGE)

    def made(self, context: Context) -> CheckedNode:
        """Return a new node with the data on the disk."""
        self.store = self.opened(SimStore)
        node = CheckedNode(self, replace(context, secret=self.rng.randbytes(32)))
        self.core = node.core
        self.answers = Answers(self.store, node.core.replicas.state, self.peer, node.orphans)
        self.loop.delay = lambda executor: self.write_seconds() if executor is node.disk else 0.0
        self.say(f"begins with {len(self.store.shards)} shards on its disk")
        return node

    def deliver(self, sender: Peer, data: bytes, reply: OnAnswer) -> None:
        """Take a record or a question; check what the answer promises."""
        question = None if data[:1] == RECORD else readable(data)
        if isinstance(question, Push | Read):
            reply = partial(self._reply, question, reply)
        super().deliver(sender, data, reply)

    def leave(self) -> None:
        """Hand over all shards, then leave."""
        self.say("is told to leave")
        self.loop.do(self.node.leave)

    def ended(self) -> None:
        """Be gone, because the node has left."""
        self.say("has left")
        self.die()
        self.left = True

    def next_write(self) -> Callable[[], object] | None:
        """Return the write that the disk is at, or None."""
        return self.loop.next_work()

    def _reply(self, question: Message, reply: OnAnswer, answer: bytes | PeerError) -> None:
        if isinstance(answer, bytes):
            self.check(question, decode(answer))
        reply(answer)


class SimStore(Store):
    """A store that makes snapshots often, because little is learned in a simulation."""

    @property
    def snapshot_due(self) -> bool:
        """Whether the log is so long that a snapshot should replace it."""
        return self._disk is not None and self._disk.log.size > _LEAST_LOG
