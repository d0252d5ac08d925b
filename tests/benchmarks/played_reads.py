"""Plays the reads of prompts with the real readers, in made-up time: which peers answer them?

Each peer's base latency is drawn once, and varies from call to call; a call takes longer by the
bytes of its answer, and by the peer's other open calls.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import cast

import numpy as np

from giaann_p2p.model.rows import Neuron, Question
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.placement import Floats, Placement
from giaann_p2p.swarm.reading.reader import Answered, ReadAction, Reader
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.row_messages import Read, Rows
from giaann_p2p.swarm.wire.shardset import packed

_BASE, _VARIES = (0.001, 0.002), (0.8, 1.3)
"""The least and most seconds of a call to a peer, and the factors by which they vary."""
_BYTES_A_SECOND = 100e6
_THINKS = 0.002
"""Seconds that a prompt computes between two questions."""
_MOST = (1 << 31) - 1

Questions = Sequence[Sequence[Neuron]]


class Others:
    """A view of peers that are all there, and have what they own."""

    admission = None

    def __init__(self, me: Peer, placement: Placement | None = None) -> None:
        self.me = me
        self._placement = Placement.of({}, 1, 1) if placement is None else placement
        self.rules = Rules(len(self._placement.owner_matrix))

    def placement(self, now: float) -> Placement:
        """Return which peer owns which shard."""
        return self._placement

    def ready(self, shard: int, now: float) -> Sequence[Peer]:
        """Return the owners of a shard."""
        return self._placement.owners(shard)

    def not_suspected(self, peer: Peer, now: float) -> bool:
        """Return True."""
        return True

    def suspect(self, peer: Peer, now: float) -> None:
        """Fail."""
        raise AssertionError("an honest peer is suspected")

    def heard(self, peer: Peer) -> None:
        """Note nothing."""


class Played:
    """Prompts that read, side by side, each of them through a reader."""

    def __init__(
        self, store: Store, layout: Layout, placement: Placement, change: Callable[[Reader], None]
    ) -> None:
        self.rows, self.nbytes = np.zeros(len(placement.peers)), np.zeros(len(placement.peers))
        """What each peer sent."""
        self.calls = 0
        self.seconds = list[float]()
        """How long each question took."""
        self._store, self._layout, self._placement = store, layout, placement
        self._change, self._chance = change, random.Random(1)
        self._base = {peer: self._chance.uniform(*_BASE) for peer in placement.peers}
        self._free = dict.fromkeys(placement.peers, 0.0)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order, self._now = count(), 0.0
        self._waiting = dict[tuple[Reader, int], Callable[[], None]]()
        self._none = packed(np.array([], np.uint16), layout.shards)

    def reader(self, number: int) -> Reader:
        """Return a new reader."""
        spec = self._store.spec
        limits = Limits(spec.branches, spec.segments, _MOST, _MOST, _MOST)
        others = Others(Peer(bytes([number]) * 32), self._placement)
        reader = Reader(limits, cast(PeersView, others), 2.0, 15.0)
        self._change(reader)
        return reader

    def play(self, prompts: Sequence[tuple[Reader, Questions]]) -> None:
        """Let all prompts read, until all have their rows."""
        for reader, questions in prompts:
            self._after(self._chance.random(), partial(self._ask, reader, iter(questions)))
        while self._events:
            self._now, _, event = heappop(self._events)
            event()

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        heappush(self._events, (self._now + seconds, next(self._order), event))

    def _ask(self, reader: Reader, questions: Iterator[Sequence[Neuron]]) -> None:
        neurons = next(questions, None)
        if neurons is None:
            return
        began = self._now

        def over() -> None:
            self.seconds.append(self._now - began)
            self._after(_THINKS, partial(self._ask, reader, questions))

        number, acts = reader.read(Question(list(neurons)), self._now)
        self._waiting[reader, number] = over
        self._do(reader, acts)

    def _do(self, reader: Reader, acts: Sequence[ReadAction]) -> None:
        for act in acts:
            if isinstance(act, Call):
                self._call(reader, act)
            elif isinstance(act, Answered):
                assert act.rows is not None
                self._waiting.pop((reader, act.number))()
        if not reader.idle:
            wait = max(1e-4, reader.next_tick(self._now) - self._now)
            self._after(wait, partial(self._tick, reader))

    def _tick(self, reader: Reader) -> None:
        if not reader.idle and reader.next_tick(self._now) <= self._now:
            self._do(reader, reader.tick(self._now))

    def _call(self, reader: Reader, call: Call) -> None:
        read = cast(Read, call.message)
        concepts, features = (np.frombuffer(one, "<u8") for one in (read.concepts, read.features))
        rows = self._store.rows(concepts, features)
        at = self._placement.peers.index(call.peer)
        self.calls += 1
        self.rows[at] += len(concepts)
        self.nbytes[at] += len(rows)
        begins = max(self._now, self._free[call.peer])  # it sends one answer after another
        self._free[call.peer] = begins + len(rows) / _BYTES_A_SECOND
        took = self._base[call.peer] * self._chance.uniform(*_VARIES)

        def told() -> None:
            self._do(reader, reader.answered(call.number, Rows(rows, self._none), self._now))

        self._after(self._free[call.peer] - self._now + took, told)


def busiest(sent: Floats) -> float:
    """Return how many times the mean the busiest peer sent."""
    return float(sent.max() / sent.mean())
