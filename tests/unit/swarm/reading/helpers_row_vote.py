"""A reader among storage peers that say what a test makes them say, in made-up time."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from heapq import heappop, heappush
from itertools import count

import numpy as np
from msgspec.structs import replace

from giaann_p2p.model.delta import total
from giaann_p2p.model.rows import Answer, DeltaRows, Neuron, Question, Row
from giaann_p2p.store.codec import plain
from giaann_p2p.swarm.reading.disputes import Lied
from giaann_p2p.swarm.reading.reader import Answered, ReadAction, Reader
from giaann_p2p.swarm.reading.row_vote import Verify
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from giaann_p2p.swarm.wire.shardset import packed
from tests.helpers_swarm import LAYOUT, LESSONS, LIMITS, NOW, SHARDS, Around, shards

CHUNKS = range(6)
NEURONS = sorted({neuron for chunk in CHUNKS for neuron in LESSONS.neurons(chunk)})[::4]
SALT = b"nobody knows it."
ALL, SOME = Verify(1.0), Verify(0.1, SALT)
Mouth = Callable[[list[Neuron], float], Answer | None]
"""What a peer says of rows at a time; None if it is silent."""


@cache
def knows(*chunks: int) -> Mouth:
    """Return an honest peer that has taken some chunks in."""
    rows = DeltaRows(total([LESSONS.delta(chunk) for chunk in chunks]))
    return lambda neurons, now: rows.read(Question(neurons))


def in_turn(*mouths: tuple[float, Mouth]) -> Mouth:
    """Return a peer that says something else from some times on."""
    return lambda neurons, now: [m for begins, m in mouths if now >= NOW + begins][-1](neurons, now)


def learning(lag: float, pace: float = 0.3, chunks: Sequence[int] = CHUNKS) -> Mouth:
    """Return an honest peer that takes in chunk after chunk, so late."""
    known = [knows(*chunks[:number]) for number in range(len(chunks) + 1)]

    def say(neurons: list[Neuron], now: float) -> Answer | None:
        taken = min(max(0, int((now - NOW - lag) / pace)), len(chunks))
        return known[taken](neurons, now)

    return say


honest = knows(*CHUNKS)


def silent(neurons: list[Neuron], now: float) -> Answer | None:
    return None


def changed(change: Callable[[Row], Row | None], about: Mouth = honest) -> Mouth:
    """Return a liar that says something else of each row."""

    def say(neurons: list[Neuron], now: float) -> Answer | None:
        rows = about(neurons, now)
        return rows and [row and change(row) for row in rows]

    return say


adds = changed(lambda row: replace(row, count=row.count + 1, strength=row.strength + 5))
hides = changed(lambda row: None)
takes = changed(lambda row: replace(row, strength=np.ones_like(row.strength), count=1))
bends = changed(lambda row: replace(row, count=row.count + 9, strength=np.ones_like(row.strength)))


class World:
    """See the module."""

    def __init__(
        self, mouths: dict[Peer, Mouth], verify: Verify, took: dict[Peer, float] | None = None
    ) -> None:
        self.mouths, self.took, self.now = mouths, took or {}, NOW
        self.around = Around(*mouths)
        self.around.ready_at = {shard: list(mouths) for shard in range(SHARDS)}
        self.reader = Reader(LIMITS, self.around, 2.0, 15.0, verify)
        self.told: dict[int, Answered] = {}
        self.lied: list[Lied] = []
        self.asked: list[tuple[Peer, list[Neuron]]] = []
        self.asked_at: list[float] = []
        self.moved: set[Peer] = set()
        self._coming: list[tuple[float, int, int, Message | None]] = []
        self._order = count()

    def read(self, neurons: Iterable[Neuron], within: float = 16.0) -> Answer | None:
        """Read rows, and return them when they are there; None in vain."""
        number, acts = self.reader.read(Question(list(neurons)), self.now)
        self._do(acts)
        end = self.now + within
        while number not in self.told and self._step(end):
            pass
        assert number in self.told
        return self.told[number].rows

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while self._step(end):
            pass
        self.now = end

    def _step(self, end: float) -> bool:
        due = self.reader.next_tick(self.now) if not self.reader.idle else end
        coming = self._coming[0][0] if self._coming else end
        if min(due, coming) >= end:
            return False
        self.now = max(self.now, min(due, coming))
        if coming <= due:
            _, _, number, answer = heappop(self._coming)
            self._do(self.reader.answered(number, answer, self.now))
        else:
            self._do(self.reader.tick(self.now))
        return True

    def _do(self, acts: list[ReadAction]) -> None:
        for act in acts:
            if isinstance(act, Lied):
                self.lied.append(act)
            elif isinstance(act, Answered):
                self.told[act.number] = act
            else:
                self._ask(act)

    def _ask(self, call: Call) -> None:
        assert isinstance(call.message, Read)
        neurons = _neurons(call.message)
        self.asked.append((call.peer, neurons))
        self.asked_at.append(self.now)
        answer = self.answer_to(call.peer, call.message)
        took = call.timeout if answer is None else self.took.get(call.peer, 0.01)
        heappush(self._coming, (self.now + took, next(self._order), call.number, answer))

    def answer_to(self, peer: Peer, message: Read) -> Message | None:
        """Return what a peer answers now; None if it is silent."""
        neurons = _neurons(message)
        if peer in self.moved:
            there = shards(*sorted({LAYOUT.shard_of(*neuron) for neuron in neurons}))
            return Rows(plain.MAGIC, packed(there, SHARDS))
        said = self.mouths[peer](neurons, self.now)
        if said is None:
            return None
        return Rows(plain.encode([row for row in said if row]), packed(shards(), SHARDS))


def _neurons(message: Read) -> list[Neuron]:
    numbers = (np.frombuffer(data, "<u8").tolist() for data in (message.concepts, message.features))
    return list(map(Neuron, *numbers))
