"""A simulated client: it pushes chunks, and reads rows that were learned."""

import random
from functools import partial
from typing import NamedTuple

from giaann_p2p.model.rows import Answer, Neuron, Question, Row
from giaann_p2p.sim.visitor import Visitor
from giaann_p2p.sim.world import World
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.swarm.reading import reader
from giaann_p2p.swarm.reading.known_rows import Marking
from giaann_p2p.swarm.reading.reader import Answered, Reader
from giaann_p2p.swarm.reading.row_vote import NOTHING, Verify
from giaann_p2p.swarm.training import writer
from giaann_p2p.swarm.training.writer import FEW_BYTES, Committed, Writer
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.row_messages import Read, ReadSlice
from giaann_p2p.swarm.wire.token import Rights
from giaann_p2p.swarm.wire.voucher import Voucher, sealing, vouched

_TIMEOUT = 4.0
_PATIENCE = 15.0
_AT_ONCE = 3
_ROWS = 4
"""The most rows of a chunk that are read at once."""
_MOST = (1 << 31) - 1
_LEAST_MARKED = 1
"""Minimum number of connections of a row that a mark confirms; rows of lessons are short."""


class Habit(NamedTuple):
    """The frequency of a client's reads, and the share of them that it verifies."""

    every: float = 20.0
    """The most seconds between two reads."""
    since: float = 0.0
    """The earliest time of the first read, in virtual seconds."""
    verify: Verify = NOTHING
    """The verification: the share of the rows read that is compared between owners."""


_USUAL = Habit()


class Client(Visitor):
    """A client that pushes chunks of one job, a few at a time, and sometimes reads random rows."""

    def __init__(
        self,
        world: World,
        name: str,
        job: bytes,
        chunks: list[int],
        skew: float,
        habit: Habit = _USUAL,
    ) -> None:
        super().__init__(world, name, Rights.CLIENT | Rights.COMPUTE, skew)
        others = [_author(world, f"{name} {n}") for n in range(1, world.rules.redundancy)]
        self._authors = [self.identity, *others]  # further keys of this client sign, too
        self.job, self.habit = job, habit
        self.rng = random.Random(f"{world.seed} {name} choice")
        self._secret = random.Random(f"{world.seed} {name} marks").randbytes(32)
        self.chunks = chunks
        self.answered = self.unanswered = 0
        self._last = 0  # the number of the last question, after all faults have ended
        self.has_read_back = False
        self.begin()

    def begin(self) -> None:
        """Start the client, or restart it after a crash."""
        super().begin()
        spec = self.world.manifest.spec
        limits = Limits(spec.branches, spec.segments, _MOST, _MOST, _MOST)
        few = FEW_BYTES if self.world.seed % 2 else 0  # odd seeds: lessons need no couriers
        self._writer = Writer(self.around, _TIMEOUT, few)
        marking = Marking(self._secret, _LEAST_MARKED)
        self._reader = Reader(limits, self.around, _TIMEOUT, _PATIENCE, self.habit.verify, marking)
        self._known: dict[Neuron, Row] = {}  # the rows that were read last
        self._reads: dict[int, tuple[list[Neuron], float]] = {}
        self._open = [n for n in self.chunks if (self.job, n) not in self.world.promises.committed]
        self.world.introduce(self)
        self.later(1.0, self.every_tick)
        first = max(0.0, self.habit.since - self.clock.now)
        self.later(first + self.rng.random() * self.habit.every, self._look_up)

    @property
    def done(self) -> bool:
        """Whether all chunks of this client are committed."""
        return not self.left

    @property
    def left(self) -> int:
        """The number of this client's chunks that are not committed yet."""
        return len(self._open) + len(self._writer)

    def push(self, chunks: list[int]) -> None:
        """Give the client more chunks to push; ignore chunks that it already has."""
        new = [chunk for chunk in chunks if chunk not in self.chunks]
        self.chunks += new
        self._open += new

    def tick(self) -> None:
        """Retry what has timed out, and push another chunk if few are in flight."""
        super().tick()
        self._do(self._writer.tick(self.now))
        self._do(self._reader.tick(self.now))
        busy = len(self._writer) >= _AT_ONCE or not self.around.members(self.now)
        if self._open and not busy and self.rng.random() < self.world.eagerness:
            chunk = self._open.pop(0)
            self.say(f"pushes chunk {chunk}")
            lessons = self.world.lessons.of(self.editions.rules.layout)
            cut, tree = partial(lessons.parcel, chunk), lessons.tree(chunk)
            said = [self._vouched(author, chunk, tree.root) for author in self._authors]
            seal, shards = sealing(said, tree), lessons.layout.shards
            self._do(self._writer.push(self.job, chunk, cut, seal, self.now, shards))

    def _vouched(self, author: Identity, chunk: int, root: bytes) -> Voucher:
        token = self.world.token_of(author.peer)
        return vouched(author, self.world.swarm_id, self.job, chunk, root, token)

    def _look_up(self) -> None:
        if self.chunks:
            self._read([self.rng.choice(self.chunks)])
        self.later(self.habit.every * self.rng.random(), self._look_up)

    def read_back(self) -> None:
        """Read some rows of each chunk, after all faults have ended; then `has_read_back`."""
        if self.chunks:
            self._read(self.chunks, is_last=True)
        else:
            self.has_read_back = True

    def _read(self, chunks: list[int], is_last: bool = False) -> None:
        """Ask for some rows of each chunk."""
        some = list(dict.fromkeys(neuron for chunk in chunks for neuron in self._some_of(chunk)))
        columns = self.world.columns
        asked, held = columns.asked(some), columns.known(self._known)
        number, acts = self._reader.read(Question(asked), self.now, held)
        self._reads[number] = some, self.clock.now
        self._last = number if is_last else self._last
        self._do(acts)

    def _some_of(self, chunk: int) -> list[Neuron]:
        known = self.world.lessons.neurons(chunk)
        return self.rng.sample(known, min(_ROWS, len(known)))

    def _do(self, acts: list[writer.WriteAction] | list[reader.ReadAction]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self.ask(act.peer, act.message, act.timeout, partial(self._on_answer, act))
            elif isinstance(act, Committed):
                self.say(f"chunk {act.chunk} is committed")
                self.world.promises.commit(act.job, act.chunk)
            elif isinstance(act, Answered):
                self.answered += act.rows is not None
                self.unanswered += act.rows is None
                neurons, asked = self._reads.pop(act.number)
                if act.rows is not None:
                    self._accept(neurons, act.rows, asked)
                if act.number == self._last:
                    self._end(neurons, act.rows)
            else:
                self.say(f"avoids a peer that lied about shard {act.shard}")
                self.world.promises.avoided(act.peer)

    def _accept(self, neurons: list[Neuron], answer: Answer, asked: float) -> None:
        """Check the rows of parts, join them as a reader does, and check the joined rows."""
        columns, promises = self.world.columns, self.world.promises
        promises.accepted(self, columns.asked(neurons), answer, asked)
        rows = columns.joined(neurons, answer)
        self._known |= {row.neuron: row for row in rows if row is not None}
        for neuron, row in zip(neurons, rows, strict=True):
            if len(parts := columns.parts(neuron)) > 1:
                promises.joined(parts, row, asked)

    def _end(self, neurons: list[Neuron], answer: Answer | None) -> None:
        if answer is None:
            self.read_back()
        else:
            self.world.promises.complete(self, self.world.columns.asked(neurons), answer)
            self.has_read_back = True

    def _on_answer(self, call: Call, answer: Message | None) -> None:
        if isinstance(call.message, Read | ReadSlice):
            self._do(self._reader.answered(call.number, answer, self.now))
        else:
            self._do(self._writer.answered(call.number, answer, self.now))


def _author(world: World, name: str) -> Identity:
    made = Identity.from_seed(random.Random(f"{world.seed} {name}").randbytes(32))
    world.admit(made.peer, Rights.COMPUTE)
    return made
