"""Calls for rows to one peer, and the validation of its answers.

An answer counts if it is complete and contains only what was asked for. A peer that sends any other
answer, or none in time, is avoided for a while. One that is merely busy counts as slow for a while.
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
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.reading.latency import Latencies
from giaann_p2p.swarm.reading.load import Loads
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import of_answer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Read, Refusal, Rows
from giaann_p2p.swarm.wire.pending import PendingCalls
from giaann_p2p.swarm.wire.shardset import unpacked


class RowAnswer(NamedTuple):
    """A peer's answer to a call for rows, validated."""

    rows: SheafRows | PlainRows | None
    """The rows that were asked for; None if there was no valid answer."""
    moved: frozenset[int]
    """Requested shards that the peer does not serve."""

    def of(self, shard: int, neurons: Sequence[Neuron]) -> Answer | None:
        """Return the rows of some neurons of a shard; None if the answer does not contain them."""
        if self.rows is None or shard in self.moved:
            return None
        return self.rows.read(Question(neurons))


Then = Callable[[RowAnswer, float], None]


class RowCalls:
    """The calls for rows that are in flight."""

    def __init__(self, layout: Layout, limits: Limits, others: PeersView, timeout: float) -> None:
        self.latencies = Latencies()
        self.loads = Loads(self.latencies, others.me)
        self._layout, self._limits, self._others = layout, limits, others
        self._timeout = timeout
        self._pending_calls = PendingCalls[Message | None, Call]()

    def __len__(self) -> int:
        return len(self._pending_calls)

    def ask(self, peer: Peer, neurons: list[Neuron], then: Then, now: float) -> Call:
        """Return a call that asks a peer for rows; `then` gets the result and the time."""
        concepts = np.array([neuron.concept for neuron in neurons], "<u8").tobytes()
        features = np.array([neuron.feature for neuron in neurons], "<u8").tobytes()
        self.loads.began(peer, now)
        number = self._pending_calls.number(partial(self._on_answer, peer, neurons, then, now))
        return Call(number, peer, Read(concepts, features), self._timeout)

    def answered(self, number: int, answer: Message | None, now: float) -> None:
        """Handle the answer to a call for rows; None means that no answer came in time."""
        self._pending_calls.done(number, answer, now)

    def _on_answer(
        self,
        peer: Peer,
        neurons: list[Neuron],
        then: Then,
        asked: float,
        answer: Message | None,
        now: float,
    ) -> list[Call]:
        busy = isinstance(answer, Refusal) and answer.is_busy
        self.loads.ended(peer, asked, now, busy=busy)
        try:
            if not isinstance(answer, Rows):
                raise MessageError("the answer contains no rows")
            moved = frozenset(unpacked(answer.moved, self._layout.shards).tolist())
            told = RowAnswer(self._rows(answer.parcel, neurons), moved)
        except (MessageError, DamagedError):
            if not busy:
                self._others.suspect(peer, now)
            told = RowAnswer(None, frozenset())
        else:
            self._others.heard(peer)
        then(told, now)
        return []

    def _rows(self, data: bytes, neurons: list[Neuron]) -> SheafRows | PlainRows:
        """Decode the rows in an answer; MessageError if some of them were not requested."""
        decode = decode_plainly if data.startswith(MAGIC) else decode_sheaf
        found = decode(data, of_answer(self._limits, len(data)))
        if not found.neurons <= set(neurons):
            raise MessageError("the answer contains rows that were not requested")
        return found
