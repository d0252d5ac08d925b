"""A running compute peer: the I/O for the decisions of `swarm.training.worker`.

1. No chunk is accepted before the first successful look at the DHT board, because the owners of its
   result would be unknown.
2. A chunk that cannot be learned is reported with the reason, and the peer goes on. An unexpected
   error ends the peer: `run` raises it, and nothing is left running.
3. A leaving peer accepts no more chunks, finishes its current chunks, reports them, and ends.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Protocol

import msgspec

from giaann_p2p.errors import MessageError
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.net.errors import Reason
from giaann_p2p.net.errors import Refused as Turned
from giaann_p2p.node.counters import WorkCounters
from giaann_p2p.node.lifetime import Part
from giaann_p2p.node.members.context import Context
from giaann_p2p.node.members.member import Member
from giaann_p2p.node.members.standing_file import StandingFile
from giaann_p2p.node.throughput import Throughput
from giaann_p2p.node.training.learner import Cutting, Made, Task, skips_of
from giaann_p2p.store.seal import from_bytes
from giaann_p2p.swarm.members.last_served import LastServed
from giaann_p2p.swarm.members.standing import Standing
from giaann_p2p.swarm.training.worker import Lesson, Worker
from giaann_p2p.swarm.training.writer import Writer
from giaann_p2p.swarm.wire.actions import Action, Call, Compute, Reply, Stop
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal, decode_question, encode
from giaann_p2p.swarm.wire.prompt_messages import Ask, Told
from giaann_p2p.swarm.wire.record import Announcement, Load
from giaann_p2p.swarm.wire.training_messages import Learn, LearnAck
from giaann_p2p.swarm.wire.voucher import Voucher, vouched

_TICK = 0.25
"""Seconds between two ticks of the worker's decisions."""
_TIMEOUT = 4.0
"""Timeout of a push to a storage peer, in seconds."""
_TOLD_WITHIN = 5.0
"""Seconds for which a leaving peer waits for coordinators to acknowledge its last reports."""
_BEGINNING = "this peer has just started and knows no other peer yet; ask again in a moment"
_LEAVING = "this peer has ended; ask another one"

Answering = Callable[[Peer, Ask], Awaitable[Message]]
"""A function that answers a peer's request to continue a prompt."""


class Learning(Protocol):
    """Learns chunks off the event loop; `Pool` implements it."""

    async def learn(self, task: Task) -> Made | str:
        """Return a chunk's result, or the reason why it could not be learned."""
        ...


class ComputeNode:
    """A running compute peer. Its caller closes `learning` and the transport after `run`."""

    def __init__(
        self,
        context: Context,
        learning: Learning,
        *,
        slots: int,
        device: str = "",
        standing_file: StandingFile | None = None,
    ) -> None:
        self.answering: Answering | None = None
        """Answers prompts; None means that prompts are refused."""
        self.counters = WorkCounters()
        self._context, self._manifest, self._log = context, context.manifest, context.log
        self.clock, self.gate = context.clock, context.gate
        self._learning, self._slots, self._device = learning, slots, device
        self._longest = profile_of(self._manifest.spec).longest
        self._standing, self._standing_file = Standing(context.identity.peer), standing_file
        if standing_file is not None:
            standing_file.restore(self._standing)
        self.member = Member(
            context, "compute", self._record, sees=("storage",), standing=self._standing
        )
        self.me, self.lookout, self.calls = self.member.me, self.member.lookout, self.member.calls
        self._served = LastServed(self.lookout.view.directory)
        self._writer = Writer(self.lookout.view, _TIMEOUT)
        self.worker = Worker(slots, self._writer, self._vouched)
        self._studies: dict[tuple[bytes, int], asyncio.Task[None]] = {}
        self.learn_speed = Throughput(self.clock)
        """Sentences learned per second of work."""
        self.token_speed = Throughput(self.clock)
        """Tokens generated per second of work."""
        self._prompts = 0
        self._leaving = False
        self._told, self._busy_at = "", float("-inf")

    def __repr__(self) -> str:
        return f"<ComputeNode {name_of(self.me)}: {self.worker.busy} chunks, {self._slots} slots>"

    @property
    def leaving(self) -> bool:
        """Whether the peer is draining: it finishes its chunks and accepts no more."""
        return self._leaving

    @property
    def ready(self) -> bool:
        """Whether the peer accepts chunks: it knows the storage peers and is not draining."""
        return self.lookout.whole.is_set() and not self.leaving

    async def run(self) -> None:
        """Run the compute peer until it has left, is closed, or fails."""
        self._log.info("%s: starting; %d slots", name_of(self.me), self._slots)
        await self.member.run(self._answer, self._parts(), self._end)

    def leave(self) -> None:
        """Start to drain: finish the current chunks, then end."""
        if not self.leaving:
            self._leaving = True
            self._log.info("draining: finishing %d chunks", self.worker.busy)
            self.worker.leave()
            self.member.announce()

    async def close(self) -> None:
        """End the compute peer now, without finishing its chunks."""
        await self.member.life.close()

    # The node's parts, and their end.

    def _parts(self) -> list[Part]:
        parts = [self._tick()]
        if self._standing_file is not None:
            parts.append(self._standing_file.run(self._standing))
        return parts

    async def _end(self) -> None:
        await self.calls.end()
        if self.leaving:
            await self.member.say_left()

    async def _tick(self) -> None:
        await self.lookout.whole.wait()
        while True:
            self._do(self.worker.tick(self.clock()))
            self._tell()
            if self._served.look(self.lookout.time()):
                self.member.announce()
            if self.leaving and self._is_finished():
                self.member.life.end()
            await asyncio.sleep(_TICK)

    def _is_finished(self) -> bool:
        """Return whether all work is done, and coordinators know it or did not answer in time."""
        now = asyncio.get_running_loop().time()
        if self.worker.busy or self._prompts:
            self._busy_at = now
            return False
        return not self.worker.untold or now > self._busy_at + _TOLD_WITHIN

    # Questions of other peers.

    async def _answer(self, peer: bytes, body: bytes) -> bytes:
        """Answer a peer's encoded request: a `net.transport.Handler`."""
        if self.member.life.is_over:
            raise Turned(Reason.LEAVING, _LEAVING)
        counters = self.counters
        counters.bytes_in += len(body)
        try:
            question = decode_question(body)
        except MessageError:
            counters.unreadable += 1
            raise
        self.gate.check(Peer(peer), question)
        answer = await self._to(Peer(peer), question)
        counters.refused += isinstance(answer, Refusal)
        data = encode(answer)
        counters.bytes_out += len(data)
        return data

    async def _to(self, peer: Peer, question: Message) -> Message:
        if (answer := self.gate.answer(question)) is not None:
            return answer
        if isinstance(question, Learn):
            return self._ordered(peer, question)
        if isinstance(question, Ask):
            return await self._asked(peer, question)
        return Refusal("a compute peer only learns chunks and answers prompts")

    def _ordered(self, peer: Peer, order: Learn) -> Message:
        if not self.lookout.whole.is_set():
            return Refusal(_BEGINNING)
        rules = self.gate.rules()
        is_cut_later = order.size and order.size not in rules.sizes
        if is_cut_later or order.doublings > rules.layout.doublings:
            return self.gate.counts_otherwise(peer)  # the client sends the newer edition
        if too_long := [text for text in order.sentences if len(text) > self._longest]:
            return Refusal(
                f"sentences: one has {len(too_long[0]):,} characters; "
                f"at most {self._longest:,} are allowed"
            )
        actions = self.worker.asked(0, peer, order, self.clock())
        (answer,) = [action.message for action in actions if isinstance(action, Reply)]
        self.counters.orders += isinstance(answer, LearnAck)
        self._do(actions)
        return answer

    async def _asked(self, peer: Peer, question: Ask) -> Message:
        if self.answering is None:
            return Refusal("this compute peer answers no prompts; ask another one")
        self.counters.prompts += 1
        self._prompts += 1
        self.token_speed.begin()
        tokens = 0
        try:
            answer = await self.answering(peer, question)
            tokens = len(answer.tokens) if isinstance(answer, Told) else 0
            return answer
        finally:
            self._prompts -= 1
            self.token_speed.end(tokens)

    # Events, and the actions that follow from them.

    def _do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, Call):
                self.calls.start(action, partial(self._answered, action.number))
            elif isinstance(action, Compute):
                self._study(action)
            elif isinstance(action, Stop):
                task = self._studies.pop((action.job, action.chunk), None)
                if task is not None:
                    task.cancel()

    def _answered(self, number: int, answer: Message | None) -> None:
        self._do(self.worker.answered(number, answer, self.clock()))

    def _study(self, order: Compute) -> None:
        key = order.job, order.chunk
        task = self.member.life.start(self._learn(order))
        self._studies[key] = task

        def over(done: asyncio.Task[None]) -> None:
            if self._studies.get(key) is done:
                del self._studies[key]

        task.add_done_callback(over)

    async def _learn(self, order: Compute) -> None:
        counters = self.counters
        began, made = perf_counter(), None
        self.learn_speed.begin()
        try:
            present = self.gate.rules().layout
            layout = self.gate.rules().layout_at(order.size).doubled(order.doublings)
            held = self._writer.cuts(self.clock())
            cuts = [present.cover(shards, layout).tobytes() for shards in held]
            made = await self._learning.learn(Task(order.sentences, cuts, layout))
        finally:
            is_done = made is not None and not isinstance(made, str)
            self.learn_speed.end(len(order.sentences) if is_done else 0)
        counters.learn_seconds.took(perf_counter() - began)
        if isinstance(made, str):
            counters.failed += 1
            self._log.warning("chunk %d cannot be learned: %s", order.chunk, made)
            outcome: Lesson | str = made
        else:
            counters.chunks += 1
            counters.sentences += len(order.sentences)
            counters.sequences += made.sequences
            cut = Cutting(made, self._manifest.spec, layout)
            tree = from_bytes(made.leaves, layout.doublings)
            outcome = Lesson(cut, tree, made.sequences, skips_of(made), layout.shards)
        self._do(self.worker.computed(order.job, order.chunk, outcome, self.clock()))

    def _vouched(self, job: bytes, chunk: int, root: bytes) -> Voucher:
        swarm_id = self._manifest.swarm_id
        return vouched(self._context.identity, swarm_id, job, chunk, root, self.gate.token)

    # The node's record and log.

    def _record(self, draft: Announcement) -> Announcement:
        return msgspec.structs.replace(
            draft,
            state="draining" if self.leaving else "active",
            device=self._device,
            slots=self._slots,
            missing=self._served.missing,
            load=Load(
                queue=self.worker.busy,
                reads=self._prompts,
                writes=self.learn_speed.whole,
                growth=self.token_speed.whole,
            ),
        )

    def _tell(self) -> None:
        told = "at work" if self.worker.busy else "waits for work"
        if told != self._told:
            self._told = told
            done = self.counters
            self._log.info(
                "%s: %d chunks learned so far, %d sentences", told, done.chunks, done.sentences
            )
