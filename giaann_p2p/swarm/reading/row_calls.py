"""Asking one peer for rows: the question, and what can be believed to be an answer to it.

An answer counts if it is whole and holds nothing but what was asked for. Any other, or none in
time, makes its peer suspicious.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.model.rows import Answer, Neuron, Question
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.codec.plain import MAGIC, PlainRows
from giaann_p2p.store.codec.plain import decode as decode_plainly
from giaann_p2p.store.codec.sheaf import SheafRows
from giaann_p2p.store.codec.sheaf import decode as decode_sheaf
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.electors import Others
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.latency import Latencies
from giaann_p2p.swarm.limits import of_answer
from giaann_p2p.swarm.messages import Message, Read, Rows
from giaann_p2p.swarm.shardset import unpacked


class Told(NamedTuple):
    """What a peer answered."""

    rows: SheafRows | PlainRows | None
    """None if that was no answer."""
    moved: frozenset[int]
    """Shards that it does not serve."""

    def of(self, shard: int, neurons: Sequence[Neuron]) -> Answer | None:
        """Return the rows of some neurons of a shard; None if the peer did not tell them."""
        if self.rows is None or shard in self.moved:
            return None
        return self.rows.read(Question(neurons))


Then = Callable[[Told, float], None]


class RowCalls:
    """The questions that are not answered yet."""

    def __init__(self, layout: Layout, limits: Limits, others: Others, timeout: float) -> None:
        self.latencies = Latencies()
        self._layout, self._limits, self._others = layout, limits, others
        self._timeout = timeout
        self._desk = Desk[Message | None, Call]()

    def __len__(self) -> int:
        return len(self._desk)

    def ask(self, peer: Peer, neurons: list[Neuron], then: Then, now: float) -> Call:
        """Ask for rows; `then` is told what comes of it."""
        concepts = np.array([neuron.concept for neuron in neurons], "<u8").tobytes()
        features = np.array([neuron.feature for neuron in neurons], "<u8").tobytes()
        number = self._desk.number(partial(self._told, peer, neurons, then, now))
        return Call(number, peer, Read(concepts, features), self._timeout)

    def answered(self, number: int, answer: Message | None, now: float) -> None:
        """Pass an answer on, or None when there was none in time."""
        self._desk.done(number, answer, now)

    def _told(
        self,
        peer: Peer,
        neurons: list[Neuron],
        then: Then,
        asked: float,
        answer: Message | None,
        now: float,
    ) -> list[Call]:
        self.latencies.took(peer, now - asked, now)
        try:
            if not isinstance(answer, Rows):
                raise MessageError("no answer to a question for rows")
            moved = frozenset(unpacked(answer.moved, self._layout.shards).tolist())
            told = Told(self._rows(answer.parcel, neurons), moved)
        except (MessageError, DamagedError):
            self._others.suspect(peer, now)
            told = Told(None, frozenset())
        else:
            self._others.heard(peer)
        then(told, now)
        return []

    def _rows(self, data: bytes, neurons: list[Neuron]) -> SheafRows | PlainRows:
        """Read rows; MessageError for those that nobody asked for."""
        decode = decode_plainly if data.startswith(MAGIC) else decode_sheaf
        found = decode(data, of_answer(self._limits, len(data)))
        if not found.neurons <= set(neurons):
            raise MessageError("rows that were not asked for")
        return found
