"""A simulated trainer: it counts the committed chunks of a job, and leases the rest.

At the end it asks the owners again. Missing chunks are learned again, but not by a peer that
reported a chunk unknown to all owners.
"""

import random
from collections.abc import Mapping
from functools import partial

from pyroaring import BitMap

from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.visitor import Visitor
from giaann_p2p.sim.world import World
from giaann_p2p.swarm.members.signs_of_life import SignsOfLife
from giaann_p2p.swarm.training.census import Census
from giaann_p2p.swarm.training.chunks import ChunkState
from giaann_p2p.swarm.training.coordinator import Coordinator, JobAction, Lied, Over
from giaann_p2p.swarm.training.delta_agreement import DeltaAgreement
from giaann_p2p.swarm.training.policy import AtRandom
from giaann_p2p.swarm.training.schedule import Schedule
from giaann_p2p.swarm.training.trust import Trust
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal, encode
from giaann_p2p.swarm.wire.token import Rights
from giaann_p2p.swarm.wire.training_messages import Beat

_TIMEOUT = 4.0
_CHECKED = 0.1
"""The share of chunks that two peers learn."""
_LOOKS = 6
"""The number of queries of the owners at the end, a second apart: some owners learn of a commit a
little later."""


class Trainer(Visitor):
    """A client that coordinates one job; after a restart, it remembers nothing."""

    def __init__(
        self, world: World, name: str, job: bytes, first: int, chunks: int, skew: float
    ) -> None:
        super().__init__(world, name, Rights.CLIENT, skew)
        self.job = job
        self._first, self._chunks = first, chunks
        self.begin()

    def begin(self) -> None:
        """Start the trainer, or restart it after a crash with nothing remembered."""
        super().begin()
        seed = random.Random(f"{self.world.seed} {self.name} trust").randbytes(16)
        self._trust, self._signs = Trust(seed), SignsOfLife()
        self.done = False
        self.liars: set[Peer] = set()
        self._led: Mapping[Peer, BitMap] = {}
        self._begin_again()
        self.world.introduce(self)
        self.later(1.0, self.every_tick)

    def _begin_again(self, led: Mapping[Peer, BitMap] | None = None) -> None:
        """Ask the owners for committed chunks; `led`: at the end, the chunks each peer reported."""
        self._led, self._looks = led or {}, _LOOKS if led is not None else 0
        self._schedule: Schedule | None = None
        self._coordinator: Coordinator | None = None
        self._ask_owners()

    def _ask_owners(self) -> None:
        self._census = Census(self.job, self.around, _TIMEOUT)

    def asked(self, sender: Peer, question: Message, reply: OnAnswer) -> None:
        """Answer the report of a compute peer on its leased chunks."""
        if isinstance(question, Beat) and self._coordinator is not None:
            answer, acts = self._coordinator.beat(sender, question, self.now)
            reply(encode(answer))
            self._do(acts)
            self._note()
        elif isinstance(question, Beat):
            reply(encode(Refusal("this peer does not coordinate this job now")))

    def tick(self) -> None:
        """Count the committed chunks first; then lease the others."""
        super().tick()
        if self.done:
            return
        if self._coordinator is None:
            self._count()
        else:
            self._do(self._coordinator.seen(self.around.workers(self.now), self.now))
            for peer in self._signs.news(self.around.directory, self.now):
                if self._coordinator is not None:
                    self._do(self._coordinator.announced(peer, self.now))
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
        """Exclude peers that reported chunks that no owner knows."""
        unknown = missing - self._census.known(missing)
        for peer, done in self._led.items():
            if done & unknown:
                self._trust.brought_nothing(peer)
                self.world.promises.brought_nothing(peer)
                self.say(f"excludes a peer that did not commit {len(done & unknown)} chunks")

    def _lead(self, committed: BitMap) -> None:
        """Lease the chunks that are not committed."""
        others = range(self._first)  # chunk numbers of a simulation are unique over jobs
        rules, known = self.world.rules, committed | BitMap(others)
        self._schedule = Schedule(AtRandom(self.job), known, alone=rules.redundancy == 1)
        agreement = DeltaAgreement(
            self.world.swarm_id, self.job, rules.redundancy, _CHECKED, self._trust
        )
        self._coordinator = Coordinator(
            self.job,
            self._schedule,
            lambda chunk: [str(chunk)],
            agreement,
            self._trust,
            lambda: self.around.rules,
            self.around.rules.sizes[0],
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

    def _do(self, acts: list[JobAction]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self.ask(act.peer, act.message, act.timeout, partial(self._answered, act.number))
            elif isinstance(act, Lied):
                self.liars.add(act.peer)
                self.world.promises.found_out(act.peer)
                self.say(f"excludes a peer with another result for chunk {act.chunk}")
            elif isinstance(act, Over) and self._coordinator is not None:
                self.say(f"is done, but for {sorted(act.given_up)}")
                self._note()
                # Chunks that were given up are retried, as when a user submits the text again.
                self._begin_again(self._coordinator.done)

    def _answered(self, number: int, answer: Message | None) -> None:
        if self._coordinator is not None:
            self._do(self._coordinator.answered(number, answer, self.now))

    def _note(self) -> None:
        """Record the chunks committed by now, except those that hostile peers reported."""
        if self._schedule is not None and self._coordinator is not None:
            committed = self._schedule.chunks(ChunkState.COMMITTED)
            for peer in self.world.hostiles:
                committed -= self._coordinator.done.get(peer.peer, BitMap())
            self._note_all(committed)

    def _note_all(self, committed: BitMap) -> None:
        for chunk in committed - BitMap(range(self._first)):
            if (self.job, chunk) not in self.world.promises.committed:
                self.world.promises.commit(self.job, chunk)
