"""A stranger that pushes poison at full rate: learnable deltas under ever new jobs."""

from functools import partial

from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.hostile.shirker import Shirker
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Learn, Refusal, encode

_AT_ONCE = 3
"""The number of jobs that it pushes per second."""


class Flooder(Shirker):
    """A peer that floods once it is told to begin to lie; until then it acts honestly."""

    def __init__(self, swarm: Swarm, name: str, skew: float) -> None:
        super().__init__(swarm, name, skew, frozenset())

    def ordered(self, sender: Peer, order: Learn, reply: OnAnswer) -> None:
        """Refuse to learn chunks, because its only attack is to push."""
        reply(encode(Refusal("no slot is free")))

    def tick(self) -> None:
        """Push to all owners, no matter what they answer."""
        if self.quiet:
            return
        for _ in range(_AT_ONCE):
            self._own += 1
            delta = self.swarm.lessons.delta(self._own)
            job = self._chance.randbytes(16)
            self._push_to_all(job, self._own, delta, partial(self._part, delta))
