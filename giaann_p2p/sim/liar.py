"""A simulated stranger that claims all shards and holds none.

It announces more room than any other peer has and every shard as ready, answers every comparison
with "the same chunks", and answers challenges with random bytes.
"""

import random

import numpy as np

from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.world import World
from giaann_p2p.swarm.replication.shard_fingerprint import PROOF_BYTES
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import AskProof, Compare, Compared, Proof, Refusal, encode
from giaann_p2p.swarm.wire.record import Announcement, signed
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import packed, unpacked

_ANNOUNCE = 10.0
_CAPACITY = 1 << 47


class Liar(Node):
    """A stranger that announces and answers falsely, and does nothing else."""

    def __init__(self, world: World, name: str) -> None:
        self.identity = Identity.from_seed(random.Random(f"{world.seed} {name}").randbytes(32))
        peer = self.identity.peer
        around = world.view_of(peer)
        super().__init__(name, peer, world.clock, world.network, world.trace, around, 0.0)
        self.world = world
        self.rng = random.Random(f"{world.seed} {name} lies")
        self._announce()

    def asked(self, sender: Peer, question: Message, reply: OnAnswer) -> None:
        """Answer every question with a lie."""
        reply(encode(self._answer(question)))

    def _answer(self, question: Message) -> Message:
        if isinstance(question, Compare):
            count = len(question.marks)
            return Compared(ReplicaState.READY.value.encode() * count, [-1] * count, [])
        if isinstance(question, AskProof):
            count = len(unpacked(question.shards, self.around.rules.shards))
            proofs = [self.rng.randbytes(PROOF_BYTES) for _ in range(count)]
            return Proof(question.shards, proofs)
        return Refusal("not now")

    def _announce(self) -> None:
        count = self.around.rules.shards
        record = signed(
            self.identity,
            Announcement(
                swarm_id=self.world.swarm_id,
                peer=self.peer,
                role="storage",
                incarnation=1,
                sequence=int(self.now * 1000),
                issued=int(self.now),
                capacity=_CAPACITY,
                ready=packed(np.arange(count, dtype=np.uint16), count),
                syncing=packed(np.empty(0, np.uint16), count),
                counted=0 if count == self.world.manifest.layout.shards else count,
            ),
        )
        self.world.publish(self, record)
        self.later(_ANNOUNCE, self._announce)


def join(world: World) -> None:
    """Add another stranger that claims all shards."""
    world.hostiles.append(Liar(world, f"liar{len(world.hostiles)}"))
