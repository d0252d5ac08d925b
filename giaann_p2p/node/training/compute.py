"""A compute peer, alive: it feeds `swarm.worker` with what happens, and does what that decides.

1. Nothing is taken before the first look at the board went well: it would not be known where what
   is learned is to go.
2. What cannot be learned is told, with the reason, and this peer lives on. An error that nobody
   planned for ends it: `run` raises it, and nothing is left running.
3. When it leaves it takes no more, finishes what it has, tells of it, and is gone.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Protocol

from giaann_p2p.errors import MessageError, PeerError, TokenError
from giaann_p2p.model.parse import max_chars
from giaann_p2p.net.board import Board
from giaann_p2p.net.errors import Reason
from giaann_p2p.net.errors import Refused as Turned
from giaann_p2p.net.transport import Transport
from giaann_p2p.node.acquaintances import Acquaintances
from giaann_p2p.node.calls import Calls
from giaann_p2p.node.clock import Clock
from giaann_p2p.node.counters import WorkCounters
from giaann_p2p.node.gate import Gate
from giaann_p2p.node.lesson import Cutting, Made, Task, skips_of
from giaann_p2p.node.lifetime import Lifetime, Part
from giaann_p2p.node.lookout import Lookout
from giaann_p2p.node.options import Options
from giaann_p2p.node.presence import Presence
from giaann_p2p.node.revoking import Revoking
from giaann_p2p.node.rules import Rules
from giaann_p2p.store.seal import from_bytes
from giaann_p2p.swarm.actions import Action, Call, Compute, Reply, Stop
from giaann_p2p.swarm.identity import Identity, Peer, name_of
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.messages import (
    Ask,
    Learn,
    Message,
    Refused,
    Taken,
    decode,
    encode,
)
from giaann_p2p.swarm.record import MOST_RECORD_ADDRESSES, Announcement, Load
from giaann_p2p.swarm.surroundings import Surroundings
from giaann_p2p.swarm.voucher import Voucher, vouched
from giaann_p2p.swarm.worker import Lesson, Worker
from giaann_p2p.swarm.writer import Writer

_TICK = 0.25
_TIMEOUT = 4.0
_TOLD_WITHIN = 5.0
"""Seconds that one who leaves waits for those to answer whom it tells what it has done."""
_BEGINNING = "this peer has just begun and knows nobody yet; ask again in a moment"
_LEAVING = "this peer has ended; ask another one"

Answering = Callable[[Peer, Ask], Awaitable[Message]]


class Learning(Protocol):
    """Learns chunks: see `node.pool`."""

    async def learn(self, task: Task) -> Made | str:
        """Return what came of a chunk, or why nothing did."""
        ...


class ComputeNode:
    """See the module. `learning` and the transport stay the caller's, to be closed after `run`."""

    def __init__(
        self,
        identity: Identity,
        manifest: Manifest,
        learning: Learning,
        transport: Transport,
        board: Board,
        *,
        slots: int,
        device: str = "",
        addresses: Callable[[], Sequence[str]] = tuple,
        acquaintances: Acquaintances | None = None,
        options: Options | None = None,
        clock: Callable[[], float] | None = None,
        incarnation: Callable[[], int] = lambda: secrets.randbits(63),
        log: logging.Logger | None = None,
        gate: Gate | None = None,
    ) -> None:
        self.me, self._identity = identity.peer, identity
        self.answering: Answering | None = None
        """Goes on from prompts; None refuses them."""
        self.counters = WorkCounters()
        self._manifest, self._learning, self._transport = manifest, learning, transport
        self._slots, self._device = slots, device
        self._addresses, self._acquaintances = addresses, acquaintances
        self._options = options or Options()
        self.clock = clock or Clock()
        self.gate = gate or Gate(manifest, transport, clock=self.clock)
        self.gate.on_change(self._members_changed)
        self._log = log or logging.getLogger("giaann.compute")
        self._incarnation = incarnation()
        self._longest = max_chars(manifest.spec)
        around = Surroundings.of(self.me, manifest, self.gate.admission)
        self.lookout = Lookout(
            board,
            around,
            manifest.layout,
            manifest.swarm_id,
            self.clock,
            options=self._options,
            log=self._log,
        )
        rules = Rules.of(manifest)
        writer = Writer(rules.shards, rules.quorum, self.lookout.others, _TIMEOUT)
        self.worker = Worker(slots, writer, self._vouched)
        self.presence = Presence(
            identity,
            board,
            self.lookout,
            self._record,
            self.clock,
            last=acquaintances.sequence if acquaintances is not None else 0,
            options=self._options,
            log=self._log,
        )
        self._life = Lifetime(self._log)
        self.calls = Calls(transport, self._life.fail)
        self._studies: dict[tuple[bytes, int], asyncio.Task[None]] = {}
        self._prompts = 0
        self._leaving = False
        self._told, self._busy_at = "", float("-inf")

    def __repr__(self) -> str:
        return f"<ComputeNode {name_of(self.me)}: {self.worker.busy} chunks, {self._slots} slots>"

    @property
    def leaving(self) -> bool:
        """Whether it takes no more."""
        return self._leaving

    @property
    def ready(self) -> bool:
        """Whether it takes work."""
        return self.lookout.whole.is_set() and not self.leaving

    async def run(self) -> None:
        """Live, until it has left, or is closed, or fails."""
        self._transport.serve(self._answer)
        self._transport.on_lost(self._lost)
        self._log.info("%s begins: %d chunks at a time", name_of(self.me), self._slots)
        await self._life.run(self._parts(), self._end)

    def leave(self) -> None:
        """Finish what there is, then end."""
        if not self.leaving:
            self._leaving = True
            self._log.info("draining: %d chunks are to be finished", self.worker.busy)
            self.worker.leave()
            self.presence.changed()

    async def close(self) -> None:
        """End now, whatever is unfinished."""
        await self._life.close()

    # Its parts, and their end.

    def _parts(self) -> list[Part]:
        parts = [
            self.lookout.run(),
            self.presence.run(),
            self._tick(),
            Revoking(self.gate, self.lookout, self._transport, self._log).run(),
        ]
        if self._acquaintances is not None:
            parts.append(self._acquaintances.run(self.lookout))
        return parts

    async def _end(self) -> None:
        await self.calls.end()
        if self.leaving and not self._life.has_failed:
            await self.presence.say("left")
            self._log.info("left")

    async def _tick(self) -> None:
        await self.lookout.whole.wait()
        while True:
            self._do(self.worker.tick(self.clock()))
            self._tell()
            if self.leaving and self._is_finished():
                self._life.end()
            await asyncio.sleep(_TICK)

    def _is_finished(self) -> bool:
        """Tell whether all is finished, and those who wanted it know, or do not listen."""
        now = asyncio.get_running_loop().time()
        if self.worker.busy or self._prompts:
            self._busy_at = now
            return False
        return not self.worker.untold or now > self._busy_at + _TOLD_WITHIN

    # Questions of others.

    async def _answer(self, peer: bytes, body: bytes) -> bytes:
        """Answer a request; see `net.transport.Handler`."""
        if self._life.is_over:
            raise Turned(Reason.LEAVING, _LEAVING)
        counters = self.counters
        counters.bytes_in += len(body)
        try:
            question = decode(body)
        except MessageError:
            counters.unreadable += 1
            raise
        self.gate.check(Peer(peer), question)
        answer = await self._to(Peer(peer), question)
        counters.refused += isinstance(answer, Refused)
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
        return Refused("a compute peer learns chunks and goes on from prompts, and nothing else")

    def _ordered(self, peer: Peer, order: Learn) -> Message:
        if not self.lookout.whole.is_set():
            return Refused(_BEGINNING)
        if too_long := [text for text in order.sentences if len(text) > self._longest]:
            return Refused(
                f"sentences: one has {len(too_long[0]):,} characters; "
                f"at most {self._longest:,} are taken"
            )
        actions = self.worker.asked(0, peer, order, self.clock())
        (answer,) = [action.message for action in actions if isinstance(action, Reply)]
        self.counters.orders += isinstance(answer, Taken)
        self._do(actions)
        return answer

    async def _asked(self, peer: Peer, question: Ask) -> Message:
        if self.answering is None:
            return Refused("this compute peer learns, and answers no prompts; ask another one")
        self.counters.prompts += 1
        self._prompts += 1
        try:
            return await self.answering(peer, question)
        finally:
            self._prompts -= 1

    # What happens, and what comes of it.

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
        task = self._life.start(self._learn(order))
        self._studies[key] = task

        def over(done: asyncio.Task[None]) -> None:
            if self._studies.get(key) is done:
                del self._studies[key]

        task.add_done_callback(over)

    async def _learn(self, order: Compute) -> None:
        counters = self.counters
        began = perf_counter()
        made = await self._learning.learn(Task(order.sentences, self._owned()))
        counters.learn_seconds.took(perf_counter() - began)
        if isinstance(made, str):
            counters.failed += 1
            self._log.warning("chunk %d cannot be learned: %s", order.chunk, made)
            outcome: Lesson | str = made
        else:
            counters.chunks += 1
            counters.sentences += len(order.sentences)
            counters.sequences += made.sequences
            cut = Cutting(made, self._manifest.spec, self._manifest.layout)
            outcome = Lesson(cut, from_bytes(made.leaves), made.sequences, skips_of(made))
        self._do(self.worker.computed(order.job, order.chunk, outcome, self.clock()))

    def _vouched(self, job: bytes, chunk: int, root: bytes) -> Voucher:
        swarm_id = self._manifest.swarm_id
        return vouched(self._identity, swarm_id, job, chunk, root, self.gate.token)

    def _owned(self) -> list[bytes]:
        """Return what sets of shards storage peers have now."""
        placement = self.lookout.others.placement(self.clock())
        return list({placement.shards_of(peer).tobytes(): None for peer in placement.peers})

    def _members_changed(self) -> None:
        if why := self.gate.own_fault():
            self._life.fail(TokenError(why))
        self.lookout.others.around.directory.look_again(self.lookout.time())
        self.presence.changed()

    def _lost(self, peer: bytes, error: PeerError) -> None:
        self.counters.lost += 1
        self._log.debug("lost the connection to %s: %s", name_of(Peer(peer)), error)

    # What it says of itself.

    def _record(self) -> Announcement:
        return Announcement(
            swarm_id=self._manifest.swarm_id,
            peer=self.me,
            role="compute",
            state="draining" if self.leaving else "active",
            incarnation=self._incarnation,
            sequence=0,
            issued=0,
            device=self._device,
            slots=self._slots,
            load=Load(queue=self.worker.busy, reads=self._prompts),
            addresses=tuple(self._addresses())[:MOST_RECORD_ADDRESSES],
            token=self.gate.token,
            revoked=self.gate.admission.revoked.number,
        )

    def _tell(self) -> None:
        told = "at work" if self.worker.busy else "waits for work"
        if told != self._told:
            self._told = told
            done = self.counters
            self._log.info(
                "%s: %d chunks learned so far, %d sentences", told, done.chunks, done.sentences
            )
