"""A simulated storage peer of any kind: a disk with injected faults, and promises that are checked.

`storage` carries the actions of the real decisions out itself; `storage_node` runs the real node.
"""

import random
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.rows import Neuron
from giaann_p2p.model.rows import Rows as ToldRows
from giaann_p2p.sim.lessons import SPEC
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.promises import Promises
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.codec import plain, sheaf
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.disk.fake_disk import FakeDisk
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.replication.storage import StoragePeer
from giaann_p2p.swarm.wire.messages import Message, Push, Pushed, Read, Rows
from giaann_p2p.swarm.wire.shardset import unpacked

_SPARE = 1 << 20
QUICK_DISK = 0.005
"""The mean time of a write on a healthy disk, in seconds."""


class Kind(NamedTuple):
    """The properties in which storage peers differ."""

    capacity: int = 0
    """The memory in bytes; 0 for a random choice."""
    memory_only: bool = False
    is_newcomer: bool = False
    """Whether the peer joins in order to vanish again; see `newcomers`."""


USUAL = Kind()


class Owner(Node):
    """A storage peer, its store and its disk; a subclass makes the decisions and the store."""

    swarm: Swarm
    rng: random.Random
    promises: Promises
    core: StoragePeer
    store: Store
    answers: Answers

    def equip(self, swarm: Swarm, kind: Kind) -> None:
        """Give the peer its memory and its disk."""
        self.swarm, self.promises, self.kind = swarm, swarm.promises, kind
        self.capacity = kind.capacity or swarm.rng.choice((1, 2, 4)) << 30
        self.disk = FakeDisk()
        self.disk_delay = QUICK_DISK
        self.left = self.lost = False
        """Whether it has left after its handover, and whether it was lost for ever."""

    @property
    def keeps(self) -> bool:
        """Whether the peer's data is there now, or will be after a restart."""
        return not (self.left or self.lost)

    @abstractmethod
    def leave(self) -> None:
        """Hand over all shards, then leave."""

    @abstractmethod
    def next_write(self) -> Callable[[], object] | None:
        """Return the write that the disk is at, or None."""

    def crash(self, in_the_middle: bool = False, lost: bool = False) -> None:
        """Crash, perhaps in the middle of a write; the disk may lose unsynced data."""
        if in_the_middle and (write := self.next_write()):
            self.disk.fail_at(self.rng.randrange(1, 4), 5, partial=True, times=1 << 30)
            write()
        self.say("crashes" + (" and is lost for ever" if lost else ""))
        self.die()
        self.lost = lost
        self.disk = self.disk.crash(self.rng)

    def restart(self) -> None:
        """Start again with the data on the disk."""
        self.alive = True
        try:
            self.begin()
        except DamagedError as error:
            self.swarm.promises.broken(f"{self.name} cannot be opened after a crash: {error}")
        else:
            self.swarm.promises.reopened(self)

    def opened(self, make: type[Store]) -> Store:
        """Return a store with the data on the disk."""
        layout = self.swarm.layout
        if self.kind.memory_only:
            return make.in_memory(SPEC, layout, retain=True)
        return make.open(self.disk, SPEC, layout, retain=True, spare=_SPARE, clock=lambda: self.now)

    def write_seconds(self) -> float:
        """Draw the time of a write."""
        return self.disk_delay * (0.5 + self.rng.random())

    def check(self, question: Message, answer: Message) -> None:
        """Note an acknowledgement, or check the rows that are served against this peer's chunks."""
        count = self.swarm.layout.shards
        if isinstance(question, Push) and isinstance(answer, Pushed):
            shards = unpacked(answer.shards, count)
            self.swarm.promises.acked(self, question.job, question.chunk, shards)
        elif isinstance(question, Read) and isinstance(answer, Rows):
            concepts = np.frombuffer(question.concepts, "<u8").tolist()
            features = np.frombuffer(question.features, "<u8").tolist()
            moved = set(unpacked(answer.moved, count).tolist())
            asked = [
                neuron
                for neuron in map(Neuron, concepts, features)
                if self.swarm.layout.shard_of(*neuron) not in moved
            ]
            self.promises.served(self, asked, rows_of(answer.parcel, self.store.limits))


def rows_of(data: bytes, limits: Limits) -> ToldRows:
    """Return the rows of an answer, in either encoding."""
    if data[: len(plain.MAGIC)] == plain.MAGIC:
        return plain.decode(data, limits)
    return sheaf.decode(data, limits)
