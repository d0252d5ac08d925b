"""Whoever has a text learned: it finds out what is committed, and leases the rest."""

import random
from collections.abc import Callable
from functools import partial

from pyroaring import BitMap

from giaann_p2p.sim.node import Node
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.census import Census
from giaann_p2p.swarm.chunks import State
from giaann_p2p.swarm.coordinator import Act, Coordinator, Lied, Over
from giaann_p2p.swarm.identity import Identity, Peer
from giaann_p2p.swarm.jury import Jury
from giaann_p2p.swarm.messages import Beat, Message, encode
from giaann_p2p.swarm.policy import AtRandom
from giaann_p2p.swarm.record import Announcement
from giaann_p2p.swarm.schedule import Schedule
from giaann_p2p.swarm.token import Rights
from giaann_p2p.swarm.trust import Trust

_TIMEOUT = 4.0
_CHECKED = 0.1
"""Share of the chunks that two peers learn."""


class Trainer(Node):
    """The coordinator of one job; when it begins again it remembers nothing."""

    def __init__(
        self, swarm: Swarm, name: str, job: bytes, first: int, chunks: int, skew: float
    ) -> None:
        identity = Identity.from_seed(random.Random(f"{swarm.seed} {name}").randbytes(32))
        swarm.admit(identity.peer, Rights.CLIENT)
        around = swarm.surroundings(identity.peer)
        super().__init__(name, identity.peer, swarm.clock, swarm.network, swarm.trace, around, skew)
        self.swarm, self.job = swarm, job
        self._first, self._chunks = first, chunks
        self.begin()

    def begin(self) -> None:
        """Begin a life."""
        rules = self.swarm.rules
        self.around = self.swarm.surroundings(self.peer)
        self._census = Census(self.job, rules.shards, rules.quorum, self.around, _TIMEOUT)
        self._schedule: Schedule | None = None
        self._coordinator: Coordinator | None = None
        self.done = False
        self.liars: set[Peer] = set()
        for data in self.swarm.records_seen_from(self):
            self.learn(data)
        self.later(1.0, self.every_tick)

    def learned(self, said: Announcement) -> None:
        """A compute peer that says something is there."""
        if said.role == "compute" and self._coordinator is not None:
            self._do(self._coordinator.announced(said.peer, self.now))

    def asked(self, sender: Peer, question: Message, reply: Callable[[bytes], None]) -> None:
        """Take word of a worker."""
        if isinstance(question, Beat) and self._coordinator is not None:
            answer, acts = self._coordinator.beat(sender, question, self.now)
            reply(encode(answer))
            self._do(acts)
            self._note()

    def tick(self) -> None:
        """Count what is committed; then lease what is not."""
        if self._coordinator is None:
            self._count()
        else:
            self._do(self._coordinator.seen(self.around.workers(self.now), self.now))
            if self._coordinator is not None:
                self._do(self._coordinator.tick(self.now))

    def _count(self) -> None:
        if not self.around.members(self.now):
            return
        for call in self._census.tick(self.now):
            self.ask(call.peer, call.message, call.timeout, partial(self._counted, call.number))
        committed = self._census.committed
        if committed is not None and self._coordinator is None:
            self.say(f"finds {len(committed)} chunks committed")
            others = range(self._first)  # chunks of a simulation have numbers of their own
            alone = self.swarm.rules.redundancy == 1
            known = committed | BitMap(others)
            self._schedule = Schedule(AtRandom(self.job), known, alone=alone)
            trust = Trust(random.Random(f"{self.swarm.seed} {self.name} trust").randbytes(16))
            jury = Jury(self.swarm.swarm_id, self.job, self.swarm.rules.redundancy, _CHECKED, trust)
            self._coordinator = Coordinator(self.job, self._schedule, lambda chunk: [], jury, trust)
            self._do(self._coordinator.read(self._first + self._chunks, True, self.now))

    def _counted(self, number: int, answer: Message | None) -> None:
        if self._coordinator is None:
            for call in self._census.answered(number, answer, self.now):
                self.ask(call.peer, call.message, call.timeout, partial(self._counted, call.number))
            self._count()

    def _do(self, acts: list[Act]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self.ask(act.peer, act.message, act.timeout, partial(self._answered, act.number))
            elif isinstance(act, Lied):
                self.liars.add(act.peer)
                self.swarm.promises.found_out(act.peer)
                self.say(f"sends away who came to something else of chunk {act.chunk}")
            elif isinstance(act, Over):
                self.say(f"is done, but for {sorted(act.given_up)}")
                self._note()
                if act.given_up:
                    self.begin()  # as somebody would who submits the text again
                else:
                    self.done = True

    def _answered(self, number: int, answer: Message | None) -> None:
        if self._coordinator is not None:
            self._do(self._coordinator.answered(number, answer, self.now))

    def _note(self) -> None:
        """Tell what is committed by now."""
        if self._schedule is not None:
            for chunk in self._schedule.chunks(State.COMMITTED) - BitMap(range(self._first)):
                if (self.job, chunk) not in self.swarm.promises.committed:
                    self.swarm.promises.commit(self.job, chunk)
