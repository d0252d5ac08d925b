"""A simulated compute peer: the real node; learning takes random time, and sometimes fails."""

import asyncio
import random
from collections.abc import Callable

import numpy as np

from giaann_p2p.node.members.context import Context
from giaann_p2p.node.training.compute import ComputeNode
from giaann_p2p.node.training.learner import Made, Task
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.sim.machine import Machine
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.seal import leaves_of, to_bytes
from giaann_p2p.swarm.wire.token import Rights

_SLOTS = 2
_TAKES = 4.0
_FAILS = 0.02


class ComputePeer(Machine):
    """A machine with a compute peer."""

    def __init__(self, swarm: Swarm, name: str, skew: float) -> None:
        super().__init__(swarm, name, skew, Rights.COMPUTE)

    def made(self, context: Context) -> ComputeNode:
        """Return a new node."""
        learning = LookUp(self.swarm.lessons, self.rng, self.say)
        return ComputeNode(context, learning, slots=_SLOTS, device="a simulation")


class LookUp:
    """Learns by looking prepared lessons up; the text of a chunk is its number."""

    def __init__(self, lessons: Lessons, rng: random.Random, say: Callable[[str], None]) -> None:
        self._lessons, self._rng, self._say = lessons, rng, say

    async def learn(self, task: Task) -> Made | str:
        """Return a chunk's result after some seconds, or say that learning failed."""
        await asyncio.sleep(_TAKES * self._rng.random())
        if self._rng.random() < _FAILS:
            return "out of memory"
        lessons, chunk = self._lessons, int(task.sentences[0])
        everything = np.arange(lessons.layout.shards, dtype=np.uint16)
        leaves = to_bytes(leaves_of(lessons.delta(chunk), everything, lessons.layout))
        parcels = {
            owned: lessons.parcel(chunk, np.frombuffer(owned, np.uint16)) for owned in task.owners
        }
        self._say(f"has learned chunk {chunk}")
        return Made(parcels, lessons.parcel(chunk, everything), leaves, 1, [])


def join(swarm: Swarm) -> None:
    """Add another compute peer."""
    name = f"compute{len(swarm.computes)}"
    swarm.computes.append(ComputePeer(swarm, name, swarm.skew()))
