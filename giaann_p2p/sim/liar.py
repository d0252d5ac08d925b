"""A simulated stranger that claims all shards and holds none.

It announces more room than any other peer has and every shard as ready, answers every comparison
with "the same chunks", and answers challenges with random bytes.
"""

import random

import numpy as np

from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.replication.shard_fingerprint import PROOF_BYTES
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.messages import (
    AskProof,
    Compare,
    Compared,
    Message,
    Proof,
    Refusal,
    encode,
)
from giaann_p2p.swarm.wire.record import Announcement, signed
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked

_ANNOUNCE = 10.0
_CAPACITY = 1 << 47


class Liar(Node):
    """A peer that only announces and answers falsely."""

    def __init__(self, swarm: Swarm, name: str) -> None:
        self.identity = Identity.from_seed(random.Random(f"{swarm.seed} {name}").randbytes(32))
        peer = self.identity.peer
        around = swarm.view_of(peer)
        super().__init__(name, peer, swarm.clock, swarm.network, swarm.trace, around, 0.0)
        self.swarm = swarm
        self.rng = random.Random(f"{swarm.seed} {name} lies")
        self._announce()

    def asked(self, sender: Peer, question: Message, reply: OnAnswer) -> None:
        """Answer with a lie."""
        reply(encode(self._answer(question)))

    def _answer(self, question: Message) -> Message:
        if isinstance(question, Compare):
            count = len(question.marks)
            return Compared(ReplicaState.READY.value.encode() * count, [-1] * count, [])
        if isinstance(question, AskProof):
            count = len(unpacked(question.shards, self.swarm.layout.shards))
            proofs = [self.rng.randbytes(PROOF_BYTES) for _ in range(count)]
            return Proof(question.shards, proofs)
        return Refusal("not now")

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
    """Add another liar."""
    swarm.hostiles.append(Liar(swarm, f"liar{len(swarm.hostiles)}"))
