"""A peer without a valid token that sends every kind of request.

Such a peer was never a member, is no longer a member, or has a token for another role.
"""

import random
from enum import Enum

import numpy as np

from giaann_p2p.errors import PeerError
from giaann_p2p.net.errors import Refused
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.hostile.watch import MADE_UP, watch_of
from giaann_p2p.sim.node import RECORD, Node, readable
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.wire.identity import Identity, Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    AskDigests,
    AskPart,
    Compare,
    Fetch,
    Offer,
    Push,
    Refusal,
    encode,
)
from giaann_p2p.swarm.wire.record import Announcement, signed_as
from giaann_p2p.swarm.wire.row_messages import Read
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.token import Rights, founded
from giaann_p2p.swarm.wire.training_messages import Beat, Learn, Learned

_TIMEOUT = 4.0
_ASKS = 0.5
"""The probability per second that the stranger sends all its questions to a random peer."""
_FOR_EVER = 1 << 40
_EVERY_RIGHT = Rights.STORAGE | Rights.COMPUTE | Rights.CLIENT


class Pretence(Enum):
    """The kinds of invalid tokens that a stranger shows."""

    NONE = "nothing"
    JUNK = "random bytes"
    STOLEN = "another member's token"
    MADE = "a token that it gave itself"
    ELSEWHERE = "another swarm's token"
    EXPIRED = "an expired token"
    REVOKED = "the token of a peer that the founder revoked"
    ROLE = "a client's token, to be a storage and compute peer"


class Stranger(Node):
    """A peer that sends all kinds of questions and records with an invalid token."""

    def __init__(self, swarm: Swarm, name: str, skew: float, pretence: Pretence) -> None:
        self._chance = random.Random(f"{swarm.seed} {name} questions")
        self.identity = Identity.from_seed(self._chance.randbytes(32))
        peer = self.identity.peer
        around = swarm.view_of(peer)
        super().__init__(name, peer, swarm.clock, swarm.network, swarm.trace, around, skew)
        self.swarm, self.pretence, self.quiet = swarm, pretence, True
        self.later(1.0, self.every_tick)

    def begin_to_lie(self) -> None:
        """Begin to show an invalid token."""
        self.quiet = False
        swarm, peer = self.swarm, self.peer
        if self.pretence is Pretence.JUNK:
            swarm.tokens[peer] = self._chance.randbytes(100)
        elif self.pretence is Pretence.STOLEN:
            swarm.tokens[peer] = swarm.token_of(swarm.storages[0].peer)
        elif self.pretence is Pretence.MADE:
            own = founded(self.identity, swarm.swarm_id, peer, _EVERY_RIGHT, _FOR_EVER)
            swarm.tokens[peer] = own.to_bytes()
        elif self.pretence is Pretence.ELSEWHERE:
            own = founded(swarm.founder, bytes(32), peer, _EVERY_RIGHT, _FOR_EVER)
            swarm.tokens[peer] = own.to_bytes()
        elif self.pretence is Pretence.EXPIRED:
            swarm.admit(peer, _EVERY_RIGHT, until=1)
        elif self.pretence is Pretence.REVOKED:
            swarm.admit(peer, _EVERY_RIGHT)
            known = swarm.admission.revoked
            revoked = known.next(swarm.founder, {*known.peers, peer})
            swarm.revoke(revoked)
        elif self.pretence is Pretence.ROLE:
            swarm.admit(peer, Rights.CLIENT)

    def tick(self) -> None:
        """Send a random peer every kind of question, and announce this peer in both roles."""
        if self.quiet or self._chance.random() > _ASKS:
            return
        others = [node for node in self.swarm.nodes if node.alive and node is not self]
        to = self._chance.choice(others)
        doublings = self.around.rules.layout.doublings
        for question in self._questions():
            if self.pretence is not Pretence.ROLE or not isinstance(question, _A_CLIENTS):
                data = encode(question, doublings)
                self.network.ask(self.peer, to.peer, data, _TIMEOUT, self._on_answer)
        for role in ("storage", "compute"):
            said = Announcement(
                swarm_id=self.swarm.swarm_id,
                peer=self.peer,
                role=role,
                incarnation=MADE_UP,
                sequence=int(self.now * 1000),
                issued=int(self.now),
                capacity=1 << 40 if role == "storage" else 0,
                slots=8 if role == "compute" else 0,
                token=self.swarm.token_of(self.peer),
            )
            self.network.tell(self.peer, to.peer, RECORD + signed_as(self.identity, said))

    def _questions(self) -> list[Message]:
        lessons = self.swarm.lessons
        count = lessons.layout.shards
        everything = np.arange(count, dtype=np.uint16)
        shards, job = packed(everything, count), self._chance.randbytes(16)
        neuron = self._chance.choice(lessons.neurons(0))
        concept, feature = (number.to_bytes(8, "little") for number in neuron)
        return [
            Push(job, 3_000_000, shards, lessons.parcel(0, everything)),
            Read(concept, feature),
            Compare(shards, [b""] * count),
            Fetch(shards, Applied().plus(job, 1).to_bytes()),
            Offer(self._chance.randrange(count)),
            AskPart(0, bytes(16), 0),
            AskDigests(shards),
            Learn(job, 3_000_000, []),
            Beat(job, [], [Learned(1)], []),
        ]

    def _on_answer(self, answer: bytes | PeerError) -> None:
        """Count a refusal; count any other answer as harm, but not a peer that stays silent."""
        watch, message = watch_of(self.swarm), readable(answer)
        if isinstance(answer, Refused) or isinstance(message, Refusal):
            watch.happened("strangers refused")
        elif message is not None:
            watch.harmed(f"a stranger is told {type(message).__name__}")

    def asked(self, sender: Peer, question: Message, reply: OnAnswer) -> None:
        """Leave every request unanswered."""


_A_CLIENTS = Read | Compare | AskDigests | Learn
"""The questions that a client may ask."""
