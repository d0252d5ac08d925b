"""A compute peer that does no honest work: it keeps what it is leased, or brings what is wrong.

It goes through its ways one after the other, an order each: whoever leads a job asks it for nothing
more once it is found out, and the next one does not know it yet.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from giaann_p2p.errors import GiaannError
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.node.lifetime import Part
from giaann_p2p.node.training.compute import ComputeNode
from giaann_p2p.node.training.learner import Task
from giaann_p2p.store.codec.parcel import decode as delta_of
from giaann_p2p.store.codec.parcel import encode as parcel_of
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import made
from giaann_p2p.swarm.wire.identity import SIGNATURE_BYTES, Peer, name_of
from giaann_p2p.swarm.wire.limits import of_chunk
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Push, Pushed, Refusal, decode, encode
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from giaann_p2p.swarm.wire.training_messages import Beat, BeatAck, Learn, LearnAck, Learned, Result
from giaann_p2p.swarm.wire.voucher import Voucher, sealing
from tests.e2e.hostile import BEGIN
from tests.e2e.hostile.tally import Tally

_TIMEOUT = 4.0
_EVERY = 1.0
_KEEPS = 60
"""Beats in which it says that it is still at what it keeps."""
_FIRST_OWN = 2_000_000
"""Chunks of its own job, so that no number is anybody else's."""
_STRONGEST = 1 << 52


class Way(Enum):
    """What it does."""

    SIGNS = "stands for what a chunk does not come to"
    BARE = "stands for what a chunk comes to, without a token that owners would take"
    FALSE = "pushes what was never learned for what it is leased"
    KEEPS = "takes what it is leased, and says for ever that it is at it"
    TWICE = "pushes what was never learned, and signs it twice"
    SILENT = "takes what it is leased, and is silent"
    BORROWS = "pushes something else with the words of those who came to the same"
    EMPTY = "pushes the empty delta for what it is leased"
    FORGES = "brings the word of another, who did not give it"
    FAILS = "takes what it is leased, and says that it cannot"
    IMPOSSIBLE = "pushes what no chunk can add"
    BOASTS = "says that it is done, and has pushed nothing"
    ELSEWHERE = "pushes rows of other shards than it names"


class Shirker(ComputeNode):
    """See the module."""

    def __init__(self, *given: Any, **more: Any) -> None:  # noqa: ANN401  (what a node is given)
        super().__init__(*given, **more)
        self.quiet = True
        """Whether it still does as honest peers do."""
        self.tally = Tally(Path.cwd())
        self._chance = random.Random("a shirker's")
        self._ways, self._own = cycle(Way), _FIRST_OWN
        self._job = self._chance.randbytes(16)

    def _parts(self) -> list[Part]:
        asyncio.get_running_loop().add_signal_handler(BEGIN, self._begin)
        return [*super()._parts(), self.tally.keep()]

    def _begin(self) -> None:
        self.quiet = False

    async def _to(self, peer: Peer, question: Message) -> Message:
        if self.quiet or not isinstance(question, Learn):
            return await super()._to(peer, question)
        way = next(self._ways)
        self.tally[f"orders: {way.value}"] += 1
        self.member.life.start(self._shirk(way, peer, question))
        return LearnAck()

    async def _shirk(self, way: Way, peer: Peer, order: Learn) -> None:
        job, chunk = order.job, order.chunk
        if way is Way.SILENT:
            return
        if way is Way.KEEPS:
            await self._keep(peer, job, chunk)
        elif way is Way.FAILS:
            await self._beat(peer, Beat(job, [], [], [(chunk, "no memory")]))
        elif way is Way.BOASTS:
            await self._beat(peer, Beat(job, [], [Learned(chunk, 64)], []))
        elif way is Way.IMPOSSIBLE:
            await self._push_impossible()
        elif way is Way.ELSEWHERE:
            await self._push_elsewhere(await self._learned(order))
        elif way is Way.EMPTY:
            await self._push(job, chunk, EMPTY, [self._word(job, chunk, EMPTY)])
        elif way in (Way.FALSE, Way.TWICE):
            false = _weaker(await self._learned(order))
            word = self._word(job, chunk, false)
            await self._push(job, chunk, false, [word] * (2 if way is Way.TWICE else 1))
        else:
            await self._come(way, peer, order, await self._learned(order))

    async def _keep(self, peer: Peer, job: bytes, chunk: int) -> None:
        for _ in range(_KEEPS):
            heard = await self._beat(peer, Beat(job, [chunk], [], []))
            if not isinstance(heard, BeatAck) or chunk in heard.leave:
                break
            await asyncio.sleep(_EVERY)

    async def _come(self, way: Way, peer: Peer, order: Learn, true: Delta) -> None:
        """Tell what a chunk came to, which is not so, or not its to tell, or all that it does."""
        job, chunk = order.job, order.chunk
        delta = true if way in (Way.BORROWS, Way.BARE) else _weaker(true)
        root, word = made(delta, self._manifest.layout).root, self._word(job, chunk, delta)
        if way is Way.FORGES:
            word = Voucher(self._another(), self._chance.randbytes(SIGNATURE_BYTES), word.token)
        if way is Way.BARE:
            word = msgspec.structs.replace(word, token=self._chance.choice((b"", b"no token")))
        came = Result(chunk, root, word)
        heard = await self._beat(peer, Beat(job, [chunk], [], [], [came]))
        if isinstance(heard, BeatAck) and heard.orders and way is Way.BORROWS:
            await self._push(job, chunk, _weaker(true), heard.orders[0].vouchers)
            await self._beat(peer, Beat(job, [], [Learned(chunk, 64)], []))

    async def _learned(self, order: Learn) -> Delta:
        """Learn what it is to learn, to know best what would be false."""
        learned = await self._learning.learn(Task(order.sentences, [], self._manifest.layout))
        if isinstance(learned, str):
            return EMPTY
        return delta_of(learned.whole, of_chunk(self._manifest.spec, self._manifest.layout.chunk))

    def _another(self) -> Peer:
        workers = [peer for peer in self.lookout.view.workers(self.clock()) if peer != self.me]
        return self._chance.choice(workers or [self.me])

    def _word(self, job: bytes, chunk: int, delta: Delta) -> Voucher:
        return self._vouched(job, chunk, made(delta, self._manifest.layout).root)

    async def _beat(self, peer: Peer, beat: Beat) -> Message | None:
        answer = await self._asked_of(peer, beat)
        if isinstance(answer, Refusal):
            self.tally["beats refused"] += 1
        return answer

    async def _asked_of(self, peer: Peer, question: Message) -> Message | None:
        try:
            return decode(
                await self.member.context.transport.call(peer, encode(question), timeout=_TIMEOUT)
            )
        except GiaannError:
            return None

    async def _push_impossible(self) -> None:
        """Push deltas that add what no chunk can add, or that are none."""
        text = ["Wolves hunt in packs through the long winter nights of the far north."]
        true = await self._learned(Learn(self._job, 0, text))
        for wrong in (
            replace(true, strength=true.strength + _STRONGEST),
            replace(true, count=true.count + _STRONGEST),
            replace(true, names={}),
            replace(true, branch=true.branch + np.uint8(200)),
        ):
            self._own += 1
            parcel = parcel_of(wrong)
            some = self._chance.choice((parcel, parcel, parcel[:-3], self._chance.randbytes(300)))
            word = self._word(self._job, self._own, wrong)
            await self._push(self._job, self._own, wrong, [word], partial(_always, some))

    async def _push_elsewhere(self, true: Delta) -> None:
        """Push for one shard rows of all of them, those of all others wrong."""
        layout, self._own = self._manifest.layout, self._own + 1
        shard = self._chance.randrange(layout.shards)
        theirs = layout.shards_of(true.concept, true.feature) != shard
        wrong = replace(true, strength=true.strength + theirs[true.source])
        whole = parcel_of(wrong)
        word = self._word(self._job, self._own, wrong)
        await self._push(self._job, self._own, wrong, [word], partial(_always, whole))

    async def _push(
        self,
        job: bytes,
        chunk: int,
        delta: Delta,
        words: list[Voucher],
        cut: Callable[[Shards], bytes] | None = None,
    ) -> None:
        """Push something to all owners, and see who takes it."""
        layout = self._manifest.layout
        seal = sealing(words, made(delta, layout))
        placement = self.lookout.view.placement(self.clock())
        for peer in placement.peers:
            shards = placement.shards_of(peer)
            if not len(shards):
                continue
            parcel = cut(shards) if cut else _part(delta, layout.shards_of, shards)
            push = Push(job, chunk, packed(shards, layout.shards), parcel, seal(shards))
            answer = await self._asked_of(peer, push)
            taken = isinstance(answer, Pushed) and len(unpacked(answer.shards, layout.shards))
            self.tally[f"pushes {'TAKEN' if taken else 'refused'} by {name_of(peer)}"] += 1


def _weaker(delta: Delta) -> Delta:
    return replace(delta, strength=np.maximum(delta.strength - 1, 1), count=delta.count + 1)


def _part(delta: Delta, home: Callable[[Any, Any], Any], shards: Shards) -> bytes:
    wanted = np.isin(home(delta.concept, delta.feature), shards)
    return parcel_of(delta.only(wanted) if wanted.any() else EMPTY)


def _always(parcel: bytes, shards: Shards) -> bytes:
    return parcel
