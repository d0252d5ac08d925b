"""Whoever has a text learned: it finds out what is committed, and leases the rest.

In the end it asks the owners again; what they lack is learned again, but not by who said that it
had brought it, if no owner knows of it.
"""

import random
from collections.abc import Callable, Mapping
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
from giaann_p2p.swarm.messages import Beat, Message, Refused, encode
from giaann_p2p.swarm.policy import AtRandom
from giaann_p2p.swarm.record import Announcement
from giaann_p2p.swarm.schedule import Schedule
from giaann_p2p.swarm.token import Rights
from giaann_p2p.swarm.trust import Trust

_TIMEOUT = 4.0
_CHECKED = 0.1
"""Share of the chunks that two peers learn."""
_LOOKS = 6
"""How often the owners are asked in the end, a second between: some hear a little after others."""


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
        self.around = self.swarm.surroundings(self.peer)
        seed = random.Random(f"{self.swarm.seed} {self.name} trust").randbytes(16)
        self._trust = Trust(seed)
        self.done = False
        self.liars: set[Peer] = set()
        self._led: Mapping[Peer, BitMap] = {}
        self._begin_again()
        for data in self.swarm.records_seen_from(self):
            self.learn(data)
        self.later(1.0, self.every_tick)

    def _begin_again(self, led: Mapping[Peer, BitMap] | None = None) -> None:
        """Ask the owners, before anything is leased; in the end: after who did what."""
        self._led, self._looks = led or {}, _LOOKS if led is not None else 0
        self._schedule: Schedule | None = None
        self._coordinator: Coordinator | None = None
        self._ask_owners()

    def _ask_owners(self) -> None:
        rules = self.swarm.rules
        self._census = Census(self.job, rules.shards, rules.quorum, self.around, _TIMEOUT)

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
        elif isinstance(question, Beat):
            reply(encode(Refused("this job is not led")))

    def tick(self) -> None:
        """Count what is committed; then lease what is not."""
        if self.done:
            return
        if self._coordinator is None:
            self._count()
        else:
            self._do(self._coordinator.seen(self.around.workers(self.now), self.now))
            if self._coordinator is not None:
                self._do(self._coordinator.tick(self.now))

    def _count(self) -> None:
        if not self.around.members(self.now):
            return
        self._ask(self._census.tick(self.now))
        committed = self._census.committed
        if committed is None or self._coordinator is not None or self.done:
            return
        missing = BitMap(range(self._first, self._first + self._chunks)) - committed
        self.say(f"finds {self._chunks - len(missing)} chunks committed")
        if missing and self._looks:
            self._looks -= 1
            self._ask_owners()
            return
        self._ask_after(missing)
        if missing:
            self._lead(committed)
        else:
            self._note_all(committed)
            self.done = True

    def _ask_after(self, missing: BitMap) -> None:
        """See who said that it had brought what the owners know nothing of."""
        unknown = missing - self._census.known(missing)
        for peer, done in self._led.items():
            if done & unknown:
                self._trust.brought_nothing(peer)
                self.swarm.promises.brought_nothing(peer)
                self.say(f"sends away who has not brought {len(done & unknown)} chunks")

    def _lead(self, committed: BitMap) -> None:
        """Have learned what is not committed."""
        others = range(self._first)  # chunks of a simulation have numbers of their own
        rules, known = self.swarm.rules, committed | BitMap(others)
        self._schedule = Schedule(AtRandom(self.job), known, alone=rules.redundancy == 1)
        jury = Jury(self.swarm.swarm_id, self.job, rules.redundancy, _CHECKED, self._trust)
        self._coordinator = Coordinator(
            self.job, self._schedule, lambda chunk: [], jury, self._trust
        )
        self._do(self._coordinator.read(self._first + self._chunks, True, self.now))

    def _ask(self, calls: list[Call]) -> None:
        for call in calls:
            then = partial(self._counted, self._census, call.number)
            self.ask(call.peer, call.message, call.timeout, then)

    def _counted(self, census: Census, number: int, answer: Message | None) -> None:
        if self._coordinator is None and census is self._census:
            self._ask(census.answered(number, answer, self.now))
            self._count()

    def _do(self, acts: list[Act]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self.ask(act.peer, act.message, act.timeout, partial(self._answered, act.number))
            elif isinstance(act, Lied):
                self.liars.add(act.peer)
                self.swarm.promises.found_out(act.peer)
                self.say(f"sends away who came to something else of chunk {act.chunk}")
            elif isinstance(act, Over) and self._coordinator is not None:
                self.say(f"is done, but for {sorted(act.given_up)}")
                self._note()
                # those that were given up are tried again, as by who submits the text again
                self._begin_again(self._coordinator.done)

    def _answered(self, number: int, answer: Message | None) -> None:
        if self._coordinator is not None:
            self._do(self._coordinator.answered(number, answer, self.now))

    def _note(self) -> None:
        """Tell what is committed by now; a hostile peer's word is none."""
        if self._schedule is not None and self._coordinator is not None:
            committed = self._schedule.chunks(State.COMMITTED)
            for peer in self.swarm.hostiles:
                committed -= self._coordinator.done.get(peer.peer, BitMap())
            self._note_all(committed)

    def _note_all(self, committed: BitMap) -> None:
        for chunk in committed - BitMap(range(self._first)):
            if (self.job, chunk) not in self.swarm.promises.committed:
                self.swarm.promises.commit(self.job, chunk)
