"""Calls for rows to one peer, and the validation of its answers.

A call may name rows that the reader knows, by their marks. A row that the peer says is still the
same counts in every way as if the peer had sent it.

An answer counts if it is complete and contains only what was asked for. A peer that sends any other
answer, or none in time, is avoided for a while. A busy peer counts as slow for a while, and so does
one that calls its answer too long, because that claim may be false.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.model.row_slice import EVERYTHING, MOST_HALVINGS, RowSlice
from giaann_p2p.model.rows import Answer, Neuron, Question
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.codec.plain import MAGIC, PlainRows
from giaann_p2p.store.codec.plain import decode as decode_plainly
from giaann_p2p.store.codec.sheaf import SheafRows
from giaann_p2p.store.codec.sheaf import decode as decode_sheaf
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.reading.known_rows import (
    NO_MARKS,
    NOTHING_KNOWN,
    Known,
    Marked,
    Marker,
    Marking,
    confirmed,
)
from giaann_p2p.swarm.reading.latency import Latencies
from giaann_p2p.swarm.reading.load import Loads
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import of_answer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.pending import PendingCalls
from giaann_p2p.swarm.wire.row_messages import Read, ReadSlice, Rows
from giaann_p2p.swarm.wire.shardset import unpacked


class RowAnswer(NamedTuple):
    """A peer's answer to a call for rows, validated."""

    rows: SheafRows | PlainRows | None
    """The rows that were asked for; None if there was no valid answer."""
    moved: frozenset[Neuron]
    """The requested neurons of shards that the peer does not serve."""
    same: Known = NOTHING_KNOWN
    """The reader's known rows that the peer confirms."""
    too_long: int = 0
    """Number of neurons in the call if the peer called the answer too long; otherwise 0."""

    def lacks(self, neurons: Sequence[Neuron]) -> bool:
        """Return whether the peer does not serve the shard of any of some neurons."""
        return bool(self.moved) and not self.moved.isdisjoint(neurons)  # mostly there are none

    def of(self, neurons: Sequence[Neuron]) -> Answer | None:
        """Return the rows of some neurons; None if the answer does not contain them all."""
        if self.rows is None or self.lacks(neurons):
            return None
        rows = self.rows.read(Question(neurons))
        return [self.same.get(*pair) for pair in zip(neurons, rows, strict=True)]


Then = Callable[[RowAnswer, float], None]
_NONE = frozenset[Neuron]()


class RowCalls:
    """The calls for rows that are in flight."""

    def __init__(
        self,
        limits: Limits,
        others: PeersView,
        timeout: float,
        marking: Marking = NO_MARKS,
    ) -> None:
        self.latencies = Latencies()
        self.loads = Loads(self.latencies, others.me)
        self._limits, self._others = limits, others
        self._timeout, self._marker = timeout, Marker(marking)
        self._pending_calls = PendingCalls[Message | None, Call]()

    def __len__(self) -> int:
        return len(self._pending_calls)

    def ask(
        self,
        peer: Peer,
        neurons: Sequence[Neuron],
        then: Then,
        now: float,
        known: Known = NOTHING_KNOWN,
        within: RowSlice = EVERYTHING,
    ) -> Call:
        """Return a call that asks a peer for rows; `then` gets the result and the time.

        The peer need not send `known` rows that have not changed. Only one neuron's row can be
        asked for `within` a slice.
        """
        marked = self._marker.marked(neurons, NOTHING_KNOWN if within.halvings else known)
        order = list(dict.fromkeys([*(neuron for neuron, _ in marked.rows), *neurons]))
        concepts = np.array([neuron.concept for neuron in order], "<u8").tobytes()
        features = np.array([neuron.feature for neuron in order], "<u8").tobytes()
        self.loads.began(peer, now)
        layout = self._others.rules.layout
        asked = _Asked(peer, frozenset(order), marked, then, now, layout, within)
        number = self._pending_calls.number(partial(self._on_answer, asked))
        read: Message = Read(concepts, features, marked.marks, marked.salt)
        if within.halvings:
            read = ReadSlice(concepts, features, *within)
        return Call(number, peer, read, self._timeout)

    def answered(self, number: int, answer: Message | None, now: float) -> None:
        """Handle the answer to a call for rows; None means that no answer came in time."""
        self._pending_calls.done(number, answer, now)

    def _on_answer(self, asked: "_Asked", answer: Message | None, now: float) -> list[Call]:
        busy = isinstance(answer, Refusal) and answer.is_busy
        too_long = isinstance(answer, Refusal) and answer.is_too_long and asked.may_be_long
        self.loads.ended(asked.peer, asked.since, now, busy=busy or too_long)
        try:
            if not isinstance(answer, Rows):
                raise MessageError("the answer contains no rows")
            told = self._told(asked, answer)
        except (MessageError, DamagedError):
            if not (busy or too_long):
                self._others.suspect(asked.peer, now)
            told = RowAnswer(None, frozenset(), too_long=len(asked.neurons) if too_long else 0)
        else:
            self._others.heard(asked.peer)
        asked.then(told, now)
        return []

    def _told(self, asked: "_Asked", answer: Rows) -> RowAnswer:
        """Validate an answer; MessageError or DamagedError if no honest peer would send it."""
        gone = frozenset(unpacked(answer.moved, asked.layout.shards).tolist())
        of = asked.layout.shard_of
        moved = frozenset(pair for pair in asked.neurons if of(*pair) in gone) if gone else _NONE
        data = answer.parcel
        decode = decode_plainly if data.startswith(MAGIC) else decode_sheaf
        found = decode(data, of_answer(self._limits, len(data)))
        if not found.neurons <= asked.neurons:
            raise MessageError("the answer contains rows that were not requested")
        if asked.within.halvings:
            _check_slice(found, asked)
        same = confirmed(answer.same, asked.marked)
        if not same.keys().isdisjoint(found.neurons):
            raise MessageError("the answer both contains and confirms a row")
        return RowAnswer(found, moved, same)


def _check_slice(found: SheafRows | PlainRows, asked: "_Asked") -> None:
    for row in found.read(Question(list(asked.neurons))):
        if row and not asked.within.has(row.target_concept, row.target_feature).all():
            raise MessageError("the answer contains targets that are not in the slice")


class _Asked(NamedTuple):
    """A call for rows that is in flight."""

    peer: Peer
    neurons: frozenset[Neuron]
    marked: Marked
    then: Then
    since: float
    layout: Layout
    """The layout in which the call, and so its answer, counts shards."""
    within: RowSlice
    """The slice of the only neuron's row that was asked for, or everything."""

    @property
    def may_be_long(self) -> bool:
        """Whether less could be asked for at once."""
        return self.within.halvings < MOST_HALVINGS
