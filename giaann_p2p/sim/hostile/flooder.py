"""A compute peer that pushes well-formed deltas at full rate, each under a new job."""

from functools import partial

from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.hostile.shirker import Shirker
from giaann_p2p.sim.world import World
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Refusal, encode
from giaann_p2p.swarm.wire.training_messages import Learn

_AT_ONCE = 3
"""The number of jobs that a flooder pushes per second."""


class Flooder(Shirker):
    """A compute peer that floods owners with pushes; until told to lie, it acts honestly."""

    def __init__(self, world: World, name: str, skew: float) -> None:
        super().__init__(world, name, skew, frozenset())

    def ordered(self, sender: Peer, order: Learn, reply: OnAnswer) -> None:
        """Refuse to learn chunks, because its only attack is to push."""
        reply(encode(Refusal("no slot is free")))

    def tick(self) -> None:
        """Push deltas of new jobs to all owners, no matter what they answer."""
        if self.quiet:
            return
        for _ in range(_AT_ONCE):
            self._own += 1
            delta = self.world.lessons.delta(self._own)
            job = self._chance.randbytes(16)
            self._push_to_all(job, self._own, delta, partial(self._part, delta))
