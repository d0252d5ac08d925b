"""A compute peer of the simulation: the real decisions; learning takes a while, and may fail."""

import random
from collections.abc import Callable
from functools import partial

from giaann_p2p.sim.node import Node
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.actions import Action, Call, Compute, Reply
from giaann_p2p.swarm.identity import Identity, Peer
from giaann_p2p.swarm.messages import Learn, Message, encode
from giaann_p2p.swarm.record import Announcement, signed
from giaann_p2p.swarm.token import Rights
from giaann_p2p.swarm.voucher import Voucher, vouched
from giaann_p2p.swarm.worker import Lesson, Worker
from giaann_p2p.swarm.writer import Writer

_SLOTS = 2
_TIMEOUT = 4.0
_ANNOUNCE = 10.0
_TAKES = 4.0
_FAILS = 0.02


class ComputePeer(Node):
    """See the module."""

    def __init__(self, swarm: Swarm, name: str, skew: float) -> None:
        self.identity = Identity.from_seed(random.Random(f"{swarm.seed} {name}").randbytes(32))
        peer = self.identity.peer
        swarm.admit(peer, Rights.COMPUTE)
        around = swarm.surroundings(peer)
        super().__init__(name, peer, swarm.clock, swarm.network, swarm.trace, around, skew)
        self.swarm = swarm
        self.rng = random.Random(f"{swarm.seed} {name} chance")
        self._sequence = 0
        self.begin()

    def begin(self) -> None:
        """Begin a life."""
        rules = self.swarm.rules
        self.around = self.swarm.surroundings(self.peer)
        self._incarnation = self.rng.getrandbits(63)
        writer = Writer(rules.shards, rules.quorum, self.around, _TIMEOUT)
        self._worker = Worker(_SLOTS, writer, self._vouched)
        for data in self.swarm.records_seen_from(self):
            self.learn(data)
        self._announce()
        self.later(self.rng.random(), self.every_tick)

    def tick(self) -> None:
        """Push and tell what is due."""
        self._do(self._worker.tick(self.now))

    def asked(self, sender: Peer, question: Message, reply: Callable[[bytes], None]) -> None:
        """Take a chunk to learn."""
        if isinstance(question, Learn):
            ticket = self.swarm.ticket(lambda answer: reply(encode(answer)))
            self._do(self._worker.asked(ticket, sender, question, self.now))

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Call):
                then = partial(self._answered, action.number)
                self.ask(action.peer, action.message, action.timeout, then)
            elif isinstance(action, Reply):
                self.swarm.answer(action.ticket, action.message)
            elif isinstance(action, Compute):
                self.later(_TAKES * self.rng.random(), partial(self._computed, action))

    def _answered(self, number: int, answer: Message | None) -> None:
        self._do(self._worker.answered(number, answer, self.now))

    def _computed(self, done: Compute) -> None:
        if self.rng.random() < _FAILS:
            outcome = self._worker.computed(done.job, done.chunk, "out of memory", self.now)
        else:
            self.say(f"has learned chunk {done.chunk}")
            cut = partial(self.swarm.lessons.parcel, done.chunk)
            tree = self.swarm.lessons.tree(done.chunk)
            outcome = self._worker.computed(done.job, done.chunk, Lesson(cut, tree), self.now)
        self._do(outcome)

    def _vouched(self, job: bytes, chunk: int, root: bytes) -> Voucher:
        token = self.swarm.token_of(self.peer)
        return vouched(self.identity, self.swarm.swarm_id, job, chunk, root, token)

    def _announce(self) -> None:
        self._sequence = max(self._sequence + 1, int(self.now * 1000))
        record = signed(
            self.identity,
            Announcement(
                swarm_id=self.swarm.swarm_id,
                peer=self.peer,
                role="compute",
                incarnation=self._incarnation,
                sequence=self._sequence,
                issued=int(self.now),
                device="a simulation",
                slots=_SLOTS,
                token=self.swarm.token_of(self.peer),
            ),
        )
        self.learn(record)
        self.swarm.publish(self, record)
        self.later(_ANNOUNCE, self._announce)


def join(swarm: Swarm) -> None:
    """Let another compute peer join."""
    name = f"compute{len(swarm.computes)}"
    swarm.computes.append(ComputePeer(swarm, name, swarm.skew()))
