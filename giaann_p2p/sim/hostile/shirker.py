"""A compute peer that does no honest work: it keeps what it is leased, or brings what is wrong."""

import random
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import partial

import numpy as np

from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.sim.compute import ComputePeer
from giaann_p2p.sim.hostile.watch import watch_of
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import Tree, made
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import (
    Beat,
    Came,
    Learn,
    Learned,
    Message,
    Push,
    Pushed,
    Taken,
)
from giaann_p2p.swarm.messages import encode as encode_message
from giaann_p2p.swarm.shardset import packed, unpacked
from giaann_p2p.swarm.voucher import Sealing, sealing

_TIMEOUT = 4.0
_STRONGEST = 1 << 52
_FIRST_OWN = 2_000_000
"""Chunks of its own job, so that no number is anybody else's."""
_MOST_KEPT = 64
_PUSHES = 0.25
"""How likely it pushes something of its own in a second."""


class Shirking(Enum):
    """What it does."""

    SILENT = "it answers nothing"
    KEEPS = "it takes what it is leased, and says for ever that it is at it"
    FAILS = "it takes what it is leased, and says that it cannot"
    BOASTS = "it says that it is done, and has pushed nothing"
    IMPOSSIBLE = "it pushes what no chunk can add"
    ELSEWHERE = "it pushes rows of other shards than it names"
    EMPTY = "it pushes the empty delta for what it is leased"
    FALSE = "it pushes what was never learned for what it is leased"
    SIGNS = "it stands for what a chunk does not come to"
    TEACHES = "it pushes what can be learned, and should not be"


_WORDS = Shirking.KEEPS, Shirking.FAILS, Shirking.BOASTS, Shirking.SIGNS
"""What it may say of a chunk that it was leased: one of those that it does."""


class Shirker(ComputePeer):
    """See the module."""

    def __init__(self, swarm: Swarm, name: str, skew: float, ways: frozenset[Shirking]) -> None:
        self.ways, self.quiet = ways, True
        self._kept: dict[int, tuple[Peer, bytes]] = {}
        self._chance = random.Random(f"{swarm.seed} {name} ways")
        self._own = _FIRST_OWN + self._chance.randrange(1000) * 1000
        self.job = self._chance.randbytes(16)
        super().__init__(swarm, name, skew)

    def begin_to_lie(self) -> None:
        """Begin to shirk."""
        self.quiet = False

    def shirks(self, way: Shirking) -> bool:
        """Tell whether it does so now."""
        return not self.quiet and way in self.ways

    def asked(self, sender: Peer, question: Message, reply: Callable[[bytes], None]) -> None:
        """Take what it is leased, and do nothing of it."""
        if self.quiet or not isinstance(question, Learn):
            super().asked(sender, question, reply)
            return
        watch_of(self.swarm).happened("orders taken by shirkers")
        if self.shirks(Shirking.SILENT):
            return
        reply(encode_message(Taken()))
        self._kept[question.chunk] = sender, question.job
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]

    def tick(self) -> None:
        """Tell and push what is not so."""
        if self.quiet:
            super().tick()
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
            delta = self.swarm.lessons.delta(self._own)
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
            watch_of(self.swarm).happened("boasts")
            self._beat(sender, Beat(job, [], [Learned(chunk)], []))
            del self._kept[chunk]
        elif way is Shirking.SIGNS:
            root = self._tree(_weaker(self.swarm.lessons.delta(chunk))).root
            came = Came(chunk, root, self._vouched(job, chunk, root))
            self._beat(sender, Beat(job, [chunk], [], [], [came]))
            del self._kept[chunk]
        if self.shirks(Shirking.EMPTY):
            self._push_to_all(job, chunk, EMPTY, lambda shards: encode(EMPTY))
        if self.shirks(Shirking.FALSE):
            false = _weaker(self.swarm.lessons.delta(chunk + 1))
            self._push_to_all(job, chunk, false, lambda shards: self._part(false, shards))

    def _tree(self, delta: Delta) -> Tree:
        return made(delta, self.swarm.layout)

    def _beat(self, sender: Peer, beat: Beat) -> None:
        self.ask(sender, beat, _TIMEOUT, lambda answer: None)

    def _push_impossible(self) -> None:
        """Push deltas that add what no chunk can add, or that are none."""
        true = self.swarm.lessons.delta(self._own)
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
        """Push to one shard rows of all of them, those of all others wrong."""
        count = self.swarm.rules.shards
        shard = np.array([self._chance.randrange(count)], np.uint16)
        self._own += 1
        delta = self.swarm.lessons.delta(self._own)
        theirs = self.swarm.layout.shards_of(delta.concept, delta.feature) != shard[0]
        strength = delta.strength + theirs[delta.source]
        wrong = replace(delta, strength=strength)
        seal = self._sealing(self.job, self._own, wrong)
        push = Push(self.job, self._own, self._packed(shard), encode(wrong), seal(shard))
        for peer in self.around.placement(self.now).owners(int(shard[0])):
            self.ask(peer, push, _TIMEOUT, self._pushed)

    def _push_to_all(
        self, job: bytes, chunk: int, delta: Delta, cut: Callable[[Shards], bytes]
    ) -> None:
        """Push something, for which it stands itself."""
        placement, seal = self.around.placement(self.now), self._sealing(job, chunk, delta)
        for peer in placement.peers:
            shards = placement.shards_of(peer)
            if len(shards):
                push = Push(job, chunk, self._packed(shards), cut(shards), seal(shards))
                self.ask(peer, push, _TIMEOUT, self._pushed)

    def _sealing(self, job: bytes, chunk: int, delta: Delta) -> Sealing:
        tree = self._tree(delta)
        return sealing([self._vouched(job, chunk, tree.root)], tree)

    def _packed(self, shards: Shards) -> bytes:
        return packed(shards, self.swarm.rules.shards)

    def _pushed(self, answer: Message | None) -> None:
        taken = isinstance(answer, Pushed) and len(unpacked(answer.shards, self.swarm.rules.shards))
        watch_of(self.swarm).happened("pushes taken" if taken else "pushes refused")

    def _part(self, delta: Delta, shards: Shards) -> bytes:
        wanted = np.isin(self.swarm.layout.shards_of(delta.concept, delta.feature), shards)
        return encode(delta.only(wanted) if wanted.any() else EMPTY)


def _weaker(delta: Delta) -> Delta:
    return replace(delta, strength=np.maximum(delta.strength - 1, 1))
