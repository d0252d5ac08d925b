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
from giaann_p2p.sim.world import World
from giaann_p2p.store.seal import leaves_of, to_bytes
from giaann_p2p.swarm.wire.token import Rights

_SLOTS = 2
_TAKES = 4.0
_FAILS = 0.02


class ComputePeer(Machine):
    """A simulated machine that runs a compute node."""

    def __init__(self, world: World, name: str, skew: float) -> None:
        super().__init__(world, name, skew, Rights.COMPUTE)

    def made(self, context: Context) -> ComputeNode:
        """Return a new compute node."""
        learning = LookUp(self.world.lessons, self.rng, self.say)
        return ComputeNode(context, learning, slots=_SLOTS, device="a simulation")


class LookUp:
    """Learns a chunk by looking up its prepared result; a chunk's text is just its number."""

    def __init__(self, lessons: Lessons, rng: random.Random, say: Callable[[str], None]) -> None:
        self._lessons, self._rng, self._say = lessons, rng, say

    async def learn(self, task: Task) -> Made | str:
        """Return a chunk's result after some seconds, or the reason why learning failed."""
        await asyncio.sleep(_TAKES * self._rng.random())
        if self._rng.random() < _FAILS:
            return "out of memory"
        lessons, chunk = self._lessons.of(task.layout), int(task.sentences[0])
        everything = np.arange(lessons.layout.shards, dtype=np.uint16)
        leaves = to_bytes(leaves_of(lessons.delta(chunk), everything, lessons.layout))
        parcels = {
            owned: lessons.parcel(chunk, np.frombuffer(owned, np.uint16)) for owned in task.cuts
        }
        self._say(f"has learned chunk {chunk}")
        return Made(parcels, lessons.parcel(chunk, everything), leaves, 1, [])
