"""A compute peer that does no honest work: it keeps its leases, or delivers wrong results."""

import random
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import partial

import numpy as np

from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.net.transport import OnAnswer
from giaann_p2p.sim.compute import ComputePeer
from giaann_p2p.sim.hostile.shameless import ShamelessGate
from giaann_p2p.sim.hostile.watch import watch_of
from giaann_p2p.sim.node import RECORD, readable
from giaann_p2p.sim.world import World
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import Tree, made
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Push, Pushed
from giaann_p2p.swarm.wire.messages import encode as encode_message
from giaann_p2p.swarm.wire.shardset import packed
from giaann_p2p.swarm.wire.training_messages import Beat, BeatAck, Learn, LearnAck, Learned, Result
from giaann_p2p.swarm.wire.voucher import Sealing, Voucher, sealing, vouched

_NO_SHARDS = np.empty(0, np.uint16)
_TIMEOUT = 4.0
_STRONGEST = 1 << 52
_FIRST_OWN = 2_000_000
"""The least chunk number of jobs that a shirker makes up; honest jobs have smaller numbers."""
_MOST_KEPT = 64
_PUSHES = 0.25
"""The probability per second that the peer pushes something of its own."""


class Shirking(Enum):
    """The ways in which a compute peer avoids honest work."""

    SILENT = "it answers nothing"
    KEEPS = "it accepts leases, and reports for ever that it is working on them"
    FAILS = "it accepts leases, and reports that it cannot learn the chunks"
    BOASTS = "it reports chunks as committed, but has pushed nothing"
    IMPOSSIBLE = "it pushes deltas that no chunk can produce"
    ELSEWHERE = "it pushes rows of other shards than it names"
    EMPTY = "it pushes the empty delta for leased chunks"
    FALSE = "it pushes deltas that were never learned for leased chunks"
    SIGNS = "it signs false results of chunks"
    TEACHES = "it pushes valid deltas that nobody should learn"


_WORDS = Shirking.KEEPS, Shirking.FAILS, Shirking.BOASTS, Shirking.SIGNS
"""The ways of shirking in which the peer reports to the coordinator on a leased chunk."""


class Shirker(ComputePeer):
    """A compute peer that takes leased chunks and learns none of them."""

    kind_of_gate = ShamelessGate

    def __init__(self, world: World, name: str, skew: float, ways: frozenset[Shirking]) -> None:
        self.ways, self.quiet = ways, True
        self._kept: dict[int, tuple[Peer, bytes]] = {}
        self._chance = random.Random(f"{world.seed} {name} ways")
        self._own = _FIRST_OWN + self._chance.randrange(1000) * 1000
        self.job = self._chance.randbytes(16)
        super().__init__(world, name, skew)

    def begin_to_lie(self) -> None:
        """Stop working honestly."""
        self.quiet = False

    def shirks(self, way: Shirking) -> bool:
        """Return whether the peer shirks in this way now."""
        return not self.quiet and way in self.ways

    def begin(self) -> None:
        """Start the node, and the peer's false reports once a second."""
        super().begin()
        self.later(self.rng.random(), self.every_tick)

    def deliver(self, sender: Peer, data: bytes, reply: OnAnswer) -> None:
        """Take orders to learn a chunk; pass every other message to the honest node."""
        order = None if self.quiet or data[:1] == RECORD else readable(data)
        if isinstance(order, Learn) and self.admits(sender, order):
            self.ordered(sender, order, reply)
        else:
            super().deliver(sender, data, reply)

    def ordered(self, sender: Peer, order: Learn, reply: OnAnswer) -> None:
        """Accept an order to learn a chunk, and remember the chunk instead of learning it."""
        watch_of(self.world).happened("orders taken by shirkers")
        if self.shirks(Shirking.SILENT):
            return
        reply(encode_message(LearnAck()))
        self._kept[order.chunk] = sender, order.job
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def tick(self) -> None:
        """Send false reports and push false results."""
        if self.quiet:
            return
        for chunk, (sender, job) in list(self._kept.items()):
            self._shirk(chunk, sender, job)
        if self._chance.random() < _PUSHES:
            self._push()

    def _push(self) -> None:
        if self.shirks(Shirking.IMPOSSIBLE):
            self._push_impossible()
        if self.shirks(Shirking.ELSEWHERE):
            self._push_elsewhere()
        if self.shirks(Shirking.TEACHES):
            self._own += 1
            delta = self.world.lessons.delta(self._own)
            self._push_to_all(self.job, self._own, delta, partial(self._part, delta))

    def _shirk(self, chunk: int, sender: Peer, job: bytes) -> None:
        words = [way for way in _WORDS if self.shirks(way)]
        way = self._chance.choice(words) if words else None
        if way is Shirking.KEEPS:
            self._beat(sender, Beat(job, [chunk], [], []))
        elif way is Shirking.FAILS:
            self._beat(sender, Beat(job, [], [], [(chunk, "no memory")]))
            del self._kept[chunk]
        elif way is Shirking.BOASTS:
            watch_of(self.world).happened("boasts")
            self._beat(sender, Beat(job, [], [Learned(chunk)], []))
            del self._kept[chunk]
        elif way is Shirking.SIGNS:
            root = self._tree(_weaker(self.world.lessons.delta(chunk))).root
            came = Result(chunk, root, self._vouched(job, chunk, root))
            self.ask(sender, Beat(job, [chunk], [], [], [came]), _TIMEOUT, self._answered)
            del self._kept[chunk]
        if self.shirks(Shirking.EMPTY):
            self._push_to_all(job, chunk, EMPTY, lambda shards: encode(EMPTY))
        if self.shirks(Shirking.FALSE):
            false = _weaker(self.world.lessons.delta(chunk + 1))
            self._push_to_all(job, chunk, false, lambda shards: self._part(false, shards))

    def _tree(self, delta: Delta) -> Tree:
        return made(delta, self.around.rules.layout)

    def _beat(self, sender: Peer, beat: Beat) -> None:
        self.ask(sender, beat, _TIMEOUT, lambda answer: None)

    def _answered(self, answer: Message | None) -> None:
        """Count the coordinator's orders to push false results that this peer signed."""
        if isinstance(answer, BeatAck):
            for _ in answer.orders:
                watch_of(self.world).happened("false results ordered")

    def _push_impossible(self) -> None:
        """Push deltas that no chunk can produce, or invalid ones."""
        true = self.world.lessons.delta(self._own)
        wrong = self._chance.choice(
            (
                replace(true, strength=true.strength + _STRONGEST),
                replace(true, count=true.count + _STRONGEST),
                replace(true, names={}),
                replace(true, branch=true.branch + np.uint8(200)),
            )
        )
        parcel = encode(wrong)
        some = self._chance.choice((parcel, parcel, parcel[:-3], self._chance.randbytes(300)))
        self._own += 1
        self._push_to_all(self.job, self._own, wrong, lambda shards: some)

    def _push_elsewhere(self) -> None:
        """Push rows of all shards, but name only one shard; the rows of the others are wrong."""
        count = self.around.rules.shards
        shard = np.array([self._chance.randrange(count)], np.uint16)
        self._own += 1
        delta = self.world.lessons.delta(self._own)
        theirs = self.around.rules.layout.shards_of(delta.concept, delta.feature) != shard[0]
        strength = delta.strength + theirs[delta.source]
        wrong = replace(delta, strength=strength)
        seal = self._sealing(self.job, self._own, wrong)
        push = Push(self.job, self._own, self._packed(shard), encode(wrong), seal(shard))
        for peer in self.around.placement(self.now).owners(int(shard[0])):
            self.ask(peer, push, _TIMEOUT, self._pushed)

    def _push_to_all(
        self, job: bytes, chunk: int, delta: Delta, cut: Callable[[Shards], bytes]
    ) -> None:
        """Push a delta to all owners, with a voucher of this peer alone."""
        placement, seal = self.around.placement(self.now), self._sealing(job, chunk, delta)
        for peer in placement.peers:
            shards = placement.shards_of(peer)
            if len(shards):
                push = Push(job, chunk, self._packed(shards), cut(shards), seal(shards))
                self.ask(peer, push, _TIMEOUT, self._pushed)

    def _sealing(self, job: bytes, chunk: int, delta: Delta) -> Sealing:
        tree = self._tree(delta)
        return sealing([self._vouched(job, chunk, tree.root)], tree)

    def _vouched(self, job: bytes, chunk: int, root: bytes) -> Voucher:
        token = self.world.token_of(self.peer)
        return vouched(self.identity, self.world.swarm_id, job, chunk, root, token)

    def _packed(self, shards: Shards) -> bytes:
        return packed(shards, self.around.rules.shards)

    def _pushed(self, answer: Message | None) -> None:
        taken = isinstance(answer, Pushed) and answer.shards != self._packed(_NO_SHARDS)
        watch_of(self.world).happened("pushes taken" if taken else "pushes refused")

    def _part(self, delta: Delta, shards: Shards) -> bytes:
        wanted = np.isin(self.around.rules.layout.shards_of(delta.concept, delta.feature), shards)
        return encode(delta.only(wanted) if wanted.any() else EMPTY)


def _weaker(delta: Delta) -> Delta:
    return replace(delta, strength=np.maximum(delta.strength - 1, 1))
