"""A simulated client: it pushes chunks, and reads rows that were learned."""

import random
from functools import partial
from typing import NamedTuple

from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.sim.node import Node
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.swarm.reading import reader
from giaann_p2p.swarm.reading.reader import Answered, Reader
from giaann_p2p.swarm.reading.row_vote import NOTHING, Verify
from giaann_p2p.swarm.training import writer
from giaann_p2p.swarm.training.writer import Committed, Writer
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.messages import Message, Read
from giaann_p2p.swarm.wire.token import Rights
from giaann_p2p.swarm.wire.voucher import Voucher, sealing, vouched

_TIMEOUT = 4.0
_PATIENCE = 15.0
_AT_ONCE = 3
_MOST = (1 << 31) - 1


class Habit(NamedTuple):
    """The frequency of a client's reads, and the share of them that it verifies."""

    every: float = 20.0
    """The most seconds between two reads."""
    since: float = 0.0
    """The earliest time of the first read, in virtual seconds."""
    verify: Verify = NOTHING
    """The verification: the share of the rows read that is compared between owners."""


_USUAL = Habit()


class Client(Node):
    """Pushes chunks of one job, a few at a time, and reads a random question now and then."""

    def __init__(
        self,
        swarm: Swarm,
        name: str,
        job: bytes,
        chunks: list[int],
        skew: float,
        habit: Habit = _USUAL,
    ) -> None:
        identity = Identity.from_seed(random.Random(f"{swarm.seed} {name}").randbytes(32))
        others = [_author(swarm, f"{name} {n}") for n in range(1, swarm.rules.redundancy)]
        self._authors = [identity, *others]  # further keys of its own, which sign the same result
        swarm.admit(identity.peer, Rights.CLIENT | Rights.COMPUTE)
        around = swarm.view_of(identity.peer)
        super().__init__(name, identity.peer, swarm.clock, swarm.network, swarm.trace, around, skew)
        self.swarm, self.job, self.habit = swarm, job, habit
        self.rng = random.Random(f"{swarm.seed} {name} choice")
        self.chunks = chunks
        self.answered = self.unanswered = 0
        self.begin()

    def begin(self) -> None:
        """Start, or restart after a crash."""
        rules, spec = self.swarm.rules, self.swarm.manifest.spec
        limits = Limits(spec.branches, spec.segments, _MOST, _MOST, _MOST)
        self.around = self.swarm.view_of(self.peer)
        self._writer = Writer(rules.shards, rules.quorum, self.around, _TIMEOUT)
        self._reader = Reader(
            self.swarm.layout, limits, self.around, _TIMEOUT, _PATIENCE, self.habit.verify
        )
        self._reads: dict[int, tuple[list[Neuron], float]] = {}
        self._open = [n for n in self.chunks if (self.job, n) not in self.swarm.promises.committed]
        self.swarm.introduce(self)
        self.later(1.0, self.every_tick)
        first = max(0.0, self.habit.since - self.clock.now)
        self.later(first + self.rng.random() * self.habit.every, self._look_up)

    @property
    def done(self) -> bool:
        """Whether all its chunks are committed."""
        return not self.left

    @property
    def left(self) -> int:
        """The number of chunks that are not committed yet."""
        return len(self._open) + len(self._writer)

    def push(self, chunks: list[int]) -> None:
        """Add chunks to push."""
        new = [chunk for chunk in chunks if chunk not in self.chunks]
        self.chunks += new
        self._open += new

    def tick(self) -> None:
        """Advance writer and reader, and push a chunk if few are in flight."""
        self._do(self._writer.tick(self.now))
        self._do(self._reader.tick(self.now))
        busy = len(self._writer) >= _AT_ONCE or not self.around.members(self.now)
        if self._open and not busy and self.rng.random() < self.swarm.eagerness:
            chunk = self._open.pop(0)
            self.say(f"pushes chunk {chunk}")
            cut = partial(self.swarm.lessons.parcel, chunk)
            tree = self.swarm.lessons.tree(chunk)
            said = [self._vouched(author, chunk, tree.root) for author in self._authors]
            seal = sealing(said, tree)
            self._do(self._writer.push(self.job, chunk, cut, seal, self.now))

    def _vouched(self, author: Identity, chunk: int, root: bytes) -> Voucher:
        token = self.swarm.token_of(author.peer)
        return vouched(author, self.swarm.swarm_id, self.job, chunk, root, token)

    def _look_up(self) -> None:
        if self.chunks:
            self._read()
        self.later(self.habit.every * self.rng.random(), self._look_up)

    def _read(self) -> None:
        chunk = self.rng.choice(self.chunks)
        known = self.swarm.lessons.neurons(chunk)
        some = self.rng.sample(known, min(4, len(known)))
        number, acts = self._reader.read(Question(some), self.now)
        self._reads[number] = some, self.clock.now
        self._do(acts)

    def _do(self, acts: list[writer.WriteAction] | list[reader.ReadAction]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self.ask(act.peer, act.message, act.timeout, partial(self._told, act))
            elif isinstance(act, Committed):
                self.say(f"chunk {act.chunk} is committed")
                self.swarm.promises.commit(act.job, act.chunk)
            elif isinstance(act, Answered):
                self.answered += act.rows is not None
                self.unanswered += act.rows is None
                neurons, asked = self._reads.pop(act.number)
                if act.rows is not None:
                    self.swarm.promises.accepted(self, neurons, act.rows, asked)
            else:
                self.say(f"shuns a peer that lied of shard {act.shard}")
                self.swarm.promises.avoided(act.peer)

    def _told(self, call: Call, answer: Message | None) -> None:
        if isinstance(call.message, Read):
            self._do(self._reader.answered(call.number, answer, self.now))
        else:
            self._do(self._writer.answered(call.number, answer, self.now))


def _author(swarm: Swarm, name: str) -> Identity:
    made = Identity.from_seed(random.Random(f"{swarm.seed} {name}").randbytes(32))
    swarm.admit(made.peer, Rights.COMPUTE)
    return made
