"""A stranger of the simulation that wants all shards and holds none.

It announces more room than anybody has and every shard as ready, says of each that is compared that
it has the same chunks, and when it is to show what it holds, says anything.
"""

import random
from collections.abc import Callable

import numpy as np

from giaann_p2p.sim.node import Node
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.identity import Identity, Peer
from giaann_p2p.swarm.messages import AskProof, Compare, Compared, Message, Proof, Refused, encode
from giaann_p2p.swarm.record import Announcement, signed
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.shardset import packed, unpacked
from giaann_p2p.swarm.weighing import PROOF_BYTES

_ANNOUNCE = 10.0
_CAPACITY = 1 << 47


class Liar(Node):
    """See the module."""

    def __init__(self, swarm: Swarm, name: str) -> None:
        self.identity = Identity.from_seed(random.Random(f"{swarm.seed} {name}").randbytes(32))
        peer = self.identity.peer
        around = swarm.surroundings(peer)
        super().__init__(name, peer, swarm.clock, swarm.network, swarm.trace, around, 0.0)
        self.swarm = swarm
        self.rng = random.Random(f"{swarm.seed} {name} lies")
        self._announce()

    def asked(self, sender: Peer, question: Message, reply: Callable[[bytes], None]) -> None:
        """Lie."""
        reply(encode(self._answer(question)))

    def _answer(self, question: Message) -> Message:
        if isinstance(question, Compare):
            count = len(question.marks)
            return Compared(State.READY.value.encode() * count, [-1] * count, [])
        if isinstance(question, AskProof):
            count = len(unpacked(question.shards, self.swarm.layout.shards))
            proofs = [self.rng.randbytes(PROOF_BYTES) for _ in range(count)]
            return Proof(question.shards, proofs)
        return Refused("not now")

    def _announce(self) -> None:
        count = self.swarm.layout.shards
        record = signed(
            self.identity,
            Announcement(
                swarm_id=self.swarm.swarm_id,
                peer=self.peer,
                role="storage",
                incarnation=1,
                sequence=int(self.now * 1000),
                issued=int(self.now),
                capacity=_CAPACITY,
                ready=packed(np.arange(count, dtype=np.uint16), count),
                syncing=packed(np.empty(0, np.uint16), count),
            ),
        )
        self.swarm.publish(self, record)
        self.later(_ANNOUNCE, self._announce)


def join(swarm: Swarm) -> None:
    """Let another liar join."""
    swarm.hostiles.append(Liar(swarm, f"liar{len(swarm.hostiles)}"))
