"""The cost of bringing a chunk to its holders, and the rate of sentences that it allows."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.net.frames import HEADER
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import made
from giaann_p2p.store.update import Update, anything, cut
from giaann_p2p.swarm.members.claims import Mask
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.replication.carried_deltas import CarriedDelta
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.training.writer import Committed, Writer
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Carried, Carry, Fetched, Push, Pushed, PushFrom
from giaann_p2p.swarm.wire.messages import encode as encoded
from giaann_p2p.swarm.wire.shardset import unpacked
from giaann_p2p.swarm.wire.voucher import Sealing, sealing, vouched
from tests.benchmarks.scale.lessons import SPEC, learned
from tests.benchmarks.scale.swarms import LINKS, QUORUM, fitting, identities, placement
from tests.benchmarks.scale.tables import Cells, number, size

PARSED = 1150
"""Sentences a second that a core parses and learns (see the README)."""
JOB = bytes(16)
CHUNKS = (CHUNK, 128 * CHUNK)
"""Sentences of a chunk: the usual number, and that of a large swarm."""
_NONE = bytes(1)


class Lesson(NamedTuple):
    """A chunk that was learned, and its parts for a swarm."""

    sentences: int
    delta: Delta
    whole: bytes
    seal: Sealing
    layout: Layout

    @property
    def rules(self) -> Rules:
        """The rules of a swarm with such chunks."""
        return Rules(self.layout.shards, sizes=(self.sentences,))

    @classmethod
    def of(cls, sentences: int, shards: int) -> "Lesson":
        """Learn a chunk for a swarm of so many shards."""
        delta, layout, author = learned(sentences // CHUNK), Layout(shards=shards), identities(1)[0]
        tree = made(delta, layout)
        seal = sealing([vouched(author, bytes(32), JOB, 0, tree.root)], tree)
        return cls(sentences, delta, encode(delta), seal, layout)

    def cut(self, shards: Shards) -> bytes:
        """Return the parcel with the rows of some shards."""
        if len(shards) == self.layout.shards:
            return self.whole
        return encode(cut(Update(JOB, 0, shards, self.delta), shards, self.layout).delta)


class Pushes(NamedTuple):
    """A chunk on its way."""

    messages: int
    sent: int
    """Bytes that leave the compute peer."""
    received: int
    """Bytes of the answers to it."""
    fetched: int
    """Bytes that its couriers send to the other holders."""


def costs(peers: int) -> Cells:
    """Return what a chunk costs."""
    cells = {"N": f"{fitting(peers):,}"}
    for sentences in CHUNKS:
        lesson, pushes = Lesson.of(sentences, fitting(peers)), pushed(peers, sentences)
        of, whole = f"{sentences:,} sentences", len(lesson.whole)
        cells[f"{of}: the delta"] = size(whole)
        cells[f"{of}: messages a sentence"] = f"{pushes.messages / sentences:.3g}"
        cells[f"{of}: bytes sent, times the delta"] = f"{pushes.sent / whole:.2f}"
        cells[f"{of}: bytes received, times the delta"] = f"{pushes.received / whole:.2f}"
        cells[f"{of}: bytes from couriers, times the delta"] = f"{pushes.fetched / whole:.2f}"
    return cells


def rates(peers: int) -> Cells:
    """Return how many sentences a second a compute peer brings to their holders."""
    cells: Cells = {}
    for sentences in CHUNKS:
        each = pushed(peers, sentences).sent / sentences
        for link in LINKS:
            rate, of = link / each, f"{sentences:,} sentences, {size(link)}/s"
            cells[f"{of}: sentences a second"] = f"{rate:,.0f}"
            cells[f"{of}: cores that fill it"] = number(rate / PARSED)
    return cells


@cache
def pushed(peers: int, sentences: int) -> Pushes:
    """Bring a chunk to its holders, which answer at once."""
    placed, lesson = placement(peers, fitting(peers)), Lesson.of(sentences, fitting(peers))
    carried: dict[Peer, CarriedDelta] = {}
    checks = DeltaChecks(SPEC, lambda: lesson.rules, anything)
    messages = sent = received = fetched = 0
    for call, answer in said(placed, lesson):
        messages += 1
        sent += HEADER + len(encoded(call.message))
        received += HEADER + len(encoded(answer))
        if isinstance(call.message, Carry):
            carried[call.peer] = CarriedDelta(call.message, checks, 0.0)
        elif isinstance(call.message, PushFrom) and call.message.source != call.peer:
            asked = unpacked(call.message.shards, lesson.layout.shards)
            piece = carried[call.message.source].piece(asked)
            fetched += HEADER + len(encoded(Fetched([piece], _NONE)))
    return Pushes(messages, sent, received, fetched)


def said(placed: Placement, lesson: Lesson) -> Iterator[tuple[Call, Message]]:
    """Yield what a writer asks to bring a chunk to its holders, and their answers."""
    writer = Writer(_Around(placed), 4.0)
    acts = [*writer.push(JOB, 0, lesson.cut, lesson.seal, 0.0)]
    is_committed = False
    while acts:
        act = acts.pop(0)
        if isinstance(act, Committed):
            is_committed = True
            continue
        answer = _answer(act.message)
        yield act, answer
        acts += writer.answered(act.number, answer, 0.0)
    if not is_committed:
        raise AssertionError("a chunk was not committed")


def _answer(question: Message) -> Message:
    if isinstance(question, Carry):
        return Carried()
    if isinstance(question, Push | PushFrom):
        return Pushed(question.shards)
    raise AssertionError(f"a writer asks {question!r}")


class _Around:
    """A view of a swarm in which all peers answer."""

    def __init__(self, placed: Placement) -> None:
        self._placed = placed
        self.rules = Rules(len(placed.owner_matrix), placed.replicas, QUORUM)

    def placement(self, now: float) -> Placement:
        return self._placed

    def beside(self, now: float) -> Mapping[Peer, Shards]:
        return {}

    def keeps(self, peer: Peer) -> bool:
        return True

    def kept(self, now: float) -> Mask:
        return np.ones(len(self._placed.owner_matrix), np.bool_)

    def awaited(self, now: float) -> Sequence[Peer]:
        return []

    def not_suspected(self, peer: Peer, now: float) -> bool:
        return True

    def suspect(self, peer: Peer, now: float) -> None:
        raise AssertionError("all answer as they should")

    def heard(self, peer: Peer) -> None:
        pass
