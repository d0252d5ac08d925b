"""Reading rows from whoever has them ready: the quickest owner first, a second one if it is late.

Who still has a shard that is no longer its own gets no updates for it: its rows are those of then.
So it is asked after the owners. Then come owners that do not say they have it ready: what they say
is some seconds old, and who has come back may be the only one left by now; who has it not tells so
at once. Last of all comes who is in doubt: it may be back, and all others gone.

A question is cut by shard and put together by peer. An answer counts if it is whole and holds
nothing but what was asked for. A peer that fails, is late or has not what it was asked for makes
the next one be asked; nobody being left, all are tried anew until the time is up.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.model.rows import Answer, Neuron, Question, Row
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.codec.plain import MAGIC, PlainRows
from giaann_p2p.store.codec.plain import decode as decode_plainly
from giaann_p2p.store.codec.sheaf import SheafRows
from giaann_p2p.store.codec.sheaf import decode as decode_sheaf
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.latency import Latencies
from giaann_p2p.swarm.limits import of_answer
from giaann_p2p.swarm.messages import MOST_READ, Message, Read, Rows
from giaann_p2p.swarm.placement import Placement
from giaann_p2p.swarm.shardset import unpacked

_PAUSE = 0.2
"""Before all are tried anew."""


class Answered(NamedTuple):
    """What was asked for; `rows` is None if nobody could tell in time, and `missing` says whose."""

    number: int
    rows: Answer | None
    missing: list[int]


Act = Call | Answered


class Others(Protocol):
    """What is known of the storage peers; see `Surroundings`."""

    def ready(self, shard: int, now: float) -> Sequence[Peer]:
        """Return those that are there and say that a shard is ready with them."""
        ...

    def placement(self, now: float) -> Placement:
        """Return who should hold which shard."""
        ...

    def reachable(self, peer: Peer, now: float) -> bool:
        """Tell whether a peer is there and has answered lately."""
        ...

    def suspect(self, peer: Peer, now: float) -> None:
        """A peer did not answer, or not as it should."""
        ...

    def heard(self, peer: Peer) -> None:
        """A peer answered."""
        ...


class _Part:
    """The neurons of one shard that somebody wants to know."""

    def __init__(self, shard: int, neurons: list[Neuron]) -> None:
        self.shard, self.neurons = shard, neurons
        self.rows: list[Row | None] | None = None
        self.tried: set[Peer] = set()
        self.asked: set[Peer] = set()
        """Those who may still answer: to ask them again would only keep them longer."""
        self.late = 0.0
        """When another peer is to be asked."""


class _Reading:
    """One question."""

    def __init__(self, number: int, question: Question, parts: list[_Part], end: float) -> None:
        self.number, self.question, self.parts, self.end = number, question, parts, end


class Reader:
    """Asks storage peers; several questions may be open."""

    def __init__(
        self, layout: Layout, limits: Limits, others: Others, timeout: float, patience: float
    ) -> None:
        self._layout, self._limits, self._others = layout, limits, others
        self._timeout, self._patience = timeout, patience
        self._calls = Desk[Message | None, Act]()
        self._readings: dict[int, _Reading] = {}
        self._numbers = 0
        self.latencies = Latencies()

    def __len__(self) -> int:
        return len(self._readings)

    def read(self, question: Question, now: float) -> tuple[int, list[Act]]:
        """Begin to ask; `Answered` will have the number that is returned."""
        self._numbers += 1
        by_shard: dict[int, list[Neuron]] = {}
        for neuron in dict.fromkeys(question.neurons):
            by_shard.setdefault(self._layout.shard_of(*neuron), []).append(neuron)
        parts = [
            _Part(shard, neurons[at : at + MOST_READ])
            for shard, neurons in sorted(by_shard.items())
            for at in range(0, len(neurons), MOST_READ)
        ]
        reading = _Reading(self._numbers, question, parts, now + self._patience)
        self._readings[self._numbers] = reading
        return self._numbers, self.tick(now)

    def give_up(self, number: int) -> None:
        """Ask no further for a question, for nobody waits; nothing if it is done.

        Answers that are on their way are still taken in: they tell how quick a peer is.
        """
        self._readings.pop(number, None)

    def answered(self, number: int, answer: Message | None, now: float) -> list[Act]:
        """Go on with an answer, or with None when there was none in time."""
        return self._calls.done(number, answer, now) + self.tick(now)

    def tick(self, now: float) -> list[Act]:
        """Ask those whose turn it is, and tell what is done; often enough to see who is late."""
        acts: list[Act] = []
        for reading in list(self._readings.values()):
            acts += self._due(reading, now)
        return acts

    def next_tick(self, now: float) -> float:
        """Return when `tick` has something to do, if nothing happens before."""
        times = [
            min(part.late, reading.end)
            for reading in self._readings.values()
            for part in reading.parts
            if part.rows is None
        ]
        return min(times, default=now + self._patience)

    def _due(self, reading: _Reading, now: float) -> list[Act]:
        open_parts = [part for part in reading.parts if part.rows is None]
        if not open_parts or now >= reading.end:
            del self._readings[reading.number]
            return [_outcome(reading)]
        asked: dict[Peer, list[_Part]] = {}
        for part in open_parts:
            if now >= part.late:
                peer = self._choice(part, now)
                if peer is not None:
                    asked.setdefault(peer, []).append(part)
        calls: list[Act] = []
        for peer, wanted in asked.items():
            calls += [self._call(peer, parts, now) for parts in _in_turns(wanted)]
        return calls

    def _choice(self, part: _Part, now: float) -> Peer | None:
        """Return whom to ask next, and note when another one is to be asked."""
        ready = self._others.ready(part.shard, now)
        owners = self._others.placement(now).owners(part.shard)
        known = dict.fromkeys([*ready, *owners])
        left = [peer for peer in known if peer not in part.tried and peer not in part.asked]
        if not left:
            part.tried.clear()
            part.late = now + _PAUSE
            return None
        peer = min(left, key=lambda peer: self._rank(peer, ready, owners, now))
        part.tried.add(peer)
        part.late = now + self.latencies.late(peer, now)
        return peer

    def _rank(
        self, peer: Peer, ready: Sequence[Peer], owners: Sequence[Peer], now: float
    ) -> tuple[bool, bool, bool, float, Peer]:
        """Return what is the less, the sooner a peer is to be asked."""
        in_doubt, usual = not self._others.reachable(peer, now), self.latencies.usual(peer, now)
        return in_doubt, peer not in ready, peer not in owners, usual, peer

    def _call(self, peer: Peer, parts: list[_Part], now: float) -> Call:
        neurons = [neuron for part in parts for neuron in part.neurons]
        concepts = np.array([neuron.concept for neuron in neurons], "<u8").tobytes()
        features = np.array([neuron.feature for neuron in neurons], "<u8").tobytes()
        number = self._calls.number(partial(self._told, peer, parts, now))
        for part in parts:
            part.asked.add(peer)
        return Call(number, peer, Read(concepts, features), self._timeout)

    def _told(
        self, peer: Peer, parts: list[_Part], asked: float, answer: Message | None, now: float
    ) -> list[Act]:
        self.latencies.took(peer, now - asked, now)
        try:
            if not isinstance(answer, Rows):
                raise MessageError("no answer to a question for rows")
            moved = set(unpacked(answer.moved, self._layout.shards).tolist())
            found = self._rows(answer.parcel, parts)
        except (MessageError, DamagedError):
            self._others.suspect(peer, now)
            moved, found = {part.shard for part in parts}, None
        else:
            self._others.heard(peer)
        for part in parts:
            part.asked.discard(peer)
            if part.shard in moved or found is None:
                part.late = now  # ask the next one at once
            elif part.rows is None:
                part.rows = found.read(Question(part.neurons))
        return []

    def _rows(self, data: bytes, parts: list[_Part]) -> SheafRows | PlainRows:
        """Read rows; MessageError for those that nobody asked for."""
        decode = decode_plainly if data.startswith(MAGIC) else decode_sheaf
        found = decode(data, of_answer(self._limits, len(data)))
        asked = {neuron for part in parts for neuron in part.neurons}
        if not found.neurons <= asked:
            raise MessageError("rows that were not asked for")
        return found


def _in_turns(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Put together as many parts as one question may ask for."""
    some, size = list[_Part](), 0
    for part in parts:
        if some and size + len(part.neurons) > MOST_READ:
            yield some
            some, size = [], 0
        some.append(part)
        size += len(part.neurons)
    yield some


def _outcome(reading: _Reading) -> Answered:
    missing = sorted({part.shard for part in reading.parts if part.rows is None})
    if missing:
        return Answered(reading.number, None, missing)
    rows: dict[Neuron, Row | None] = {}
    for part in reading.parts:
        rows.update(zip(part.neurons, part.rows or [], strict=True))
    return Answered(reading.number, [rows[neuron] for neuron in reading.question.neurons], [])
