"""A simulated storage peer: the real node, on a disk with injected faults.

What the peer acknowledges and serves is checked against the promises of its swarm.
"""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError, DiskError, PeerError
from giaann_p2p.model.row_slice import RowSlice
from giaann_p2p.model.rows import Answer, Neuron, Row
from giaann_p2p.model.rows import Question as AskedRows
from giaann_p2p.model.rows import Rows as ToldRows
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.node.members.context import Context
from giaann_p2p.sim.checked import CheckedNode
from giaann_p2p.sim.holder import Holder
from giaann_p2p.sim.machine import Machine
from giaann_p2p.sim.node import RECORD, readable
from giaann_p2p.sim.promises import Promises
from giaann_p2p.sim.world import World
from giaann_p2p.store.codec import plain, sheaf
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.storage import StoragePeer
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Push, Pushed, PushFrom, decode, doublings_of
from giaann_p2p.swarm.wire.record import Announcement
from giaann_p2p.swarm.wire.row_mark import MARK_BYTES, mark
from giaann_p2p.swarm.wire.row_messages import Read, ReadSlice, Rows
from giaann_p2p.swarm.wire.shardset import recounted, unpacked
from giaann_p2p.swarm.wire.token import Rights

QUICK_DISK = 0.005
"""The mean time of a write on a healthy disk, in seconds."""
_DIVIDES_FOR = 4.0
"""The most seconds after which a peer learns that its store has divided the shards."""
_AGAIN = 10.0
"""The seconds after which a peer that could not start is started again."""
_SPARE = 1 << 20
"""The most bytes of released deltas that the store caches."""
_LEAST_LOG = 1 << 14
"""The size of a log in bytes above which a snapshot replaces it; a real store lets it grow more."""


class Kind(NamedTuple):
    """The properties in which storage peers differ."""

    capacity: int = 0
    """The memory in bytes; 0 for a random choice."""
    memory_only: bool = False
    is_newcomer: bool = False
    """Whether the peer joins in order to vanish again; see `newcomers`."""


USUAL = Kind()


class Storage(Machine, Holder):
    """A machine with a storage peer; each write takes its disk's delay."""

    node: CheckedNode

    def __init__(self, world: World, name: str, skew: float, kind: Kind = USUAL) -> None:
        self.kind, self.promises = kind, self.promises_of(world)
        self.capacity = kind.capacity or world.rng.choice((1, 2, 4)) << 30
        self.disk = FakeDisk()
        self.disk_delay = QUICK_DISK
        self.left = self.lost = False
        self._answers: tuple[StoragePeer, Answers] | None = None
        super().__init__(world, name, skew, Rights.STORAGE)

    def promises_of(self, world: World) -> Promises:
        """Return the promises that this peer's writes, rows and accusations are checked against."""
        return world.promises

    def made(self, context: Context) -> CheckedNode:
        """Return a new storage node with the data on this machine's disk."""
        self.store = self._opened()
        context = replace(context, secret=self.rng.randbytes(32))
        node = CheckedNode(context, self.capacity, self.world, self, self.promises, self.told)
        self.loop.delay = lambda executor: self._write_seconds() if executor is node.disk else 0.0
        self.say(f"begins with {len(self.store.shards)} shards on its disk")
        return node

    @property
    def core(self) -> StoragePeer:
        """The decision-making part of the node, as it is now."""
        return self.node.core

    @property
    def answers(self) -> Answers:
        """Answers to questions by the node's present state, without asking the node itself."""
        core = self.core
        if self._answers is None or self._answers[0] is not core:
            answers = Answers(
                self.store,
                core.replicas.state,
                self.peer,
                self.node.orphans,
                core.carried,
                core.replicas.shards,
            )
            self._answers = core, answers
        return self._answers[1]

    def told(self, announcement: Announcement) -> Announcement:
        """Check the accusations in the node's own announcement; return what is announced."""
        for naming in announcement.wrong:
            self.promises.named(self, Peer(naming.peer))
        return announcement

    def deliver(self, sender: Peer, data: bytes, reply: OnAnswer) -> None:
        """Pass a record or a question to the node; check what the answer promises."""
        question = None if data[:1] == RECORD else readable(data)
        if isinstance(question, Push | PushFrom | Read | ReadSlice):
            reply = partial(self._reply, question, doublings_of(data), reply)
        super().deliver(sender, data, reply)

    def divides(self) -> None:
        """Notify the world that this peer's store is about to divide its shards."""
        self.later(0, lambda: self.world.on_division(self))

    def divided(self) -> None:
        """Delay the node's reaction to the division of its shards, as with a large store."""
        self.loop.lag = _DIVIDES_FOR * self.rng.random()

    def leave(self) -> None:
        """Tell the peer to hand over all its shards, and then to leave."""
        self.say("is told to leave")
        self.loop.do(self.node.leave)

    def ended(self) -> None:
        """Kill the machine for good, because its node has left the swarm."""
        self.say("has left")
        self.die()
        self.left = True

    def crash(
        self, in_the_middle: bool = False, lost: bool = False, after_a_write: bool = False
    ) -> None:
        """Kill the peer; its disk may lose unsynced data.

        The crash may be in the middle of the next write, or right after that write, before the peer
        knows of it.
        """
        if (in_the_middle or after_a_write) and (write := self.loop.next_work()):
            if in_the_middle:
                self.disk.fail_at(self.rng.randrange(1, 4), 5, partial=True, times=1 << 30)
            write()
        self.say("crashes" + (" and is lost for ever" if lost else ""))
        self.die()
        self.lost = lost
        self.disk = self.disk.crash(self.rng)

    def restart(self) -> None:
        """Start the peer again with the data on its disk; check that nothing durable is missing."""
        self.alive = True
        try:
            self.begin()
        except DamagedError as error:
            self.world.promises.broken(f"{self.name} cannot be opened after a crash: {error}")
        except DiskError as error:  # it has shards to divide first, and its disk is full
            self.say(f"cannot begin: {error}")
            self.die()
            self.clock.after(_AGAIN, self._restart)
        else:
            if not self.kind.memory_only:
                self.world.promises.reopened(self)

    def _restart(self) -> None:
        if not (self.alive or self.left or self.lost):
            self.restart()

    def _opened(self) -> Store:
        spec, layout = self.world.lessons.spec, self.world.manifest.layout
        if self.kind.memory_only:
            return SimStore.in_memory(spec, layout, retain=True)
        return SimStore.open(
            self.disk, spec, layout, retain=True, spare=_SPARE, clock=lambda: self.now
        )

    def _write_seconds(self) -> float:
        return self.disk_delay * (0.5 + self.rng.random())

    def _reply(
        self, question: Message, doublings: int, reply: OnAnswer, answer: bytes | PeerError
    ) -> None:
        if isinstance(answer, bytes):
            self._check(question, doublings, decode(answer))
        reply(answer)

    def _check(self, question: Message, doublings: int, answer: Message) -> None:
        """Record an acknowledgement, or check the rows that are served against this peer's chunks.

        The answer numbers shards by the same layout as the question.
        """
        if not isinstance(answer, Pushed | Rows):
            return
        asked_in = self.world.manifest.layout.doubled(doublings)
        count = asked_in.shards
        if isinstance(question, Push | PushFrom) and isinstance(answer, Pushed):
            shards = unpacked(answer.shards, count)
            self.world.promises.acked(self, question.job, question.chunk, shards, count)
            stored = recounted(shards, count, self.store.layout.shards).tolist()
            having = self.store.sets(stored)
            if any((question.job, question.chunk) not in having.get(n, ()) for n in stored):
                self.promises.broken(f"{self.name} acknowledges a chunk that it does not have")
        elif isinstance(question, Read | ReadSlice) and isinstance(answer, Rows):
            moved = set(unpacked(answer.moved, count).tolist())
            asked = [one for one in _neurons(question) if asked_in.shard_of(*one) not in moved]
            told = rows_of(answer.parcel, self.store.limits)
            if isinstance(question, ReadSlice):
                within = RowSlice(question.halvings, question.number)
                self.promises.served(self, asked, told, within)
            else:
                all_told = _Confirmed(told, self._confirmed(question, answer))
                self.promises.served(self, asked, all_told)

    def _confirmed(self, question: Read, answer: Rows) -> dict[Neuron, Row | None]:
        """Return this peer's rows of the neurons whose rows the answer confirms as unchanged."""
        neurons = _neurons(question)
        same = np.frombuffer(answer.same, "<u2").tolist()
        found = dict[Neuron, Row | None]()
        for at in same:
            (row,) = self.store.read(AskedRows([neurons[at]]))
            told = question.marks[MARK_BYTES * at : MARK_BYTES * (at + 1)]
            if row is None or mark(row, question.salt) != told:
                self.promises.broken(f"{self.name} confirms a row that it does not have")
            found[neurons[at]] = row
        return found


def _neurons(question: Read | ReadSlice) -> list[Neuron]:
    """Return the neurons whose rows are asked for."""
    if isinstance(question, Read):
        halves = question.concepts, question.features
    else:
        halves = question.concept, question.feature
    return list(map(Neuron, *(np.frombuffer(half, "<u8").tolist() for half in halves)))


class _Confirmed(NamedTuple):
    """The rows of an answer, with those that it confirms without sending them."""

    sent: ToldRows
    same: dict[Neuron, Row | None]

    def read(self, question: AskedRows) -> Answer:
        """Return the rows of the question's neurons, in order; None for a neuron without one."""
        rows = self.sent.read(question)
        return [self.same.get(*pair) for pair in zip(question.neurons, rows, strict=True)]


class SimStore(Store):
    """A store that makes snapshots often, because little is learned in a simulation."""

    @property
    def snapshot_due(self) -> bool:
        """Whether the log of changes is so long that a snapshot should replace it."""
        return self._disk is not None and self._disk.log.size > _LEAST_LOG


def rows_of(data: bytes, limits: Limits) -> ToldRows:
    """Return the rows of an answer, in either of the two encodings."""
    if data[: len(plain.MAGIC)] == plain.MAGIC:
        return plain.decode(data, limits)
    return sheaf.decode(data, limits)
