"""A compute peer's decisions: which chunks it learns, and when it pushes their deltas to owners.

The peer sends each coordinator a heartbeat every few seconds, and whenever work is done. It signs
and reports the result of each chunk. It pushes the delta to the owners only when a coordinator
orders it; the order has the vouchers of the other peers that agreed, if there were any (see
`trust`). If the owners of a shard cannot be reached, the peer keeps trying. A coordinator that
stays silent is presumed gone; pushes in flight are completed, because they help any peer that
resumes the job.

No coordinator can block the slots by never deciding on results, or by ordering pushes that no owner
accepts. A coordinator with an overdue decision gets no further slots. If no slot is free, a chunk
that was learned some time ago is dropped in favour of a coordinator that has fewer slots. If the
job still needs the dropped chunk, it is learned again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from giaann_p2p.store.seal import Tree
from giaann_p2p.swarm.training import writer
from giaann_p2p.swarm.training.pushed_chunk import Cut
from giaann_p2p.swarm.training.writer import Committed, Writer
from giaann_p2p.swarm.wire.actions import Action, Call, Compute, Reply, Stop
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import BUSY, Refusal
from giaann_p2p.swarm.wire.pending import PendingCalls
from giaann_p2p.swarm.wire.training_messages import (
    MOST_AWAITED,
    Beat,
    BeatAck,
    Learn,
    LearnAck,
    Learned,
    PushOrder,
    Result,
    Skip,
)
from giaann_p2p.swarm.wire.voucher import Vouch, sealing

_EVERY = 3.0
"""Seconds between two heartbeats to a coordinator."""
_TIMEOUT = 4.0
"""Timeout of a heartbeat, in seconds."""
_PATIENCE = 120.0
"""Seconds of silence after which a coordinator is presumed gone."""
_WORD_WITHIN = 5.0
"""Seconds after which a learned chunk is overdue, and may be dropped to free its slot. Normally it
is committed or revoked well before: the coordinator's decision takes one round trip, the push
another."""
_OTHERWISE = f"{BUSY}: another client has this chunk learned from another text, or sealed otherwise"
_MOST_REASON = 200
"""Maximum length in characters of the reason that a heartbeat gives for a failed chunk."""

Key = tuple[Peer, bytes]
"""Identifies an order: a coordinator, and the id of its job."""
_Task = tuple[bytes, int]
"""Identifies a chunk: the id of its job, and its number."""


class Lesson(NamedTuple):
    """The result of learning a chunk's text."""

    cut: Cut
    """A function that returns a parcel with the delta's rows for some shards."""
    tree: Tree
    """The hash tree over the delta's shards."""
    sequences: int = 0
    """Number of sentences that were learned."""
    skips: Sequence[Skip] = ()
    """The sentences that could not be learned."""
    shards: int = 0
    """The number of shards that `cut` and `tree` divide the delta into; 0 for the present
    number."""


class _Learned(NamedTuple):
    """A learned chunk that is being pushed, or that waits for a coordinator's decision."""

    lesson: Lesson
    since: float
    """Time at which the chunk was learned."""


class _InWork(NamedTuple):
    """A chunk in progress."""

    sentences: list[str]
    """The text that is learned. Any client may order text under any job's name, so a client gets
    the result of its own text only."""
    doublings: int
    """Number of doublings of the layout in which the chunk is sealed."""
    size: int
    """The chunk size that determines how its delta is cut; 0 for the manifest's."""
    learned: _Learned | None = None
    """The learned chunk; None until then."""


@dataclass
class _Orders:
    """One coordinator's orders for one job, and the reports that it has yet to acknowledge."""

    heard: float
    """Time of the coordinator's last sign of life."""
    next: float
    """Time at which the next heartbeat to the coordinator is due."""
    working: set[int] = field(default_factory=set)
    """The chunks that the coordinator wants and that are not committed yet."""
    results: dict[int, Result] = field(default_factory=dict)
    """The results, by chunk, for which the coordinator has yet to order a push or a drop."""
    done: dict[int, Learned] = field(default_factory=dict)
    """The committed chunks that the coordinator has not acknowledged yet."""
    failed: dict[int, str] = field(default_factory=dict)
    """The failed chunks that the coordinator has not acknowledged yet, with the reasons."""
    asking: bool = False
    """Whether a heartbeat to the coordinator is in flight."""


class Worker:
    """The decisions of one compute peer, for all coordinators that use it."""

    def __init__(self, slots: int, pushes: Writer, vouch: Vouch) -> None:
        """Begin; `slots` is the number of chunks to work on at a time, for all coordinators."""
        self._slots, self._writer, self._vouch = slots, pushes, vouch
        self._calls = PendingCalls[Message | None, Action]()
        self._orders: dict[Key, _Orders] = {}
        self._on_its_way: dict[_Task, _InWork] = {}
        """The chunks in progress. A chunk that several coordinators want takes one slot, and is
        sealed only once: a coordinator that has another text or wants another seal is refused."""
        self._leaving = False

    @property
    def free(self) -> int:
        """The number of free slots."""
        return 0 if self._leaving else self._slots - len(self._on_its_way)

    @property
    def busy(self) -> int:
        """The number of chunks that are being learned or pushed."""
        return len(self._on_its_way)

    @property
    def untold(self) -> bool:
        """Whether any coordinator has yet to acknowledge a result, a commit or a failure."""
        return any(
            orders.done or orders.failed or orders.results for orders in self._orders.values()
        )

    def leave(self) -> None:
        """Take no more chunks, and finish those in progress."""
        self._leaving = True

    def asked(self, ticket: int, sender: Peer, order: Learn, now: float) -> list[Action]:
        """Accept an ordered chunk if it is in progress already, or if there is a slot for it.

        If no slot is free, one may be freed by dropping an overdue chunk.
        """
        key, task = (sender, order.job), (order.job, order.chunk)
        orders = self._orders.get(key, _Orders(now, now + _EVERY))
        orders.heard = now
        in_work = self._on_its_way.get(task)
        if in_work is not None and in_work[:3] != (order.sentences, order.doublings, order.size):
            if self._writer.pushes(*task) or not self._is_late(task, now):
                return [Reply(ticket, Refusal(_OTHERWISE))]
            self._drop(task)  # its coordinator may have gone long ago
            in_work = None
        if order.chunk in orders.working or order.chunk in orders.done:
            return [Reply(ticket, LearnAck())]
        if in_work is None and (why := self._refusal(sender, now)):
            return [Reply(ticket, Refusal(why))]
        self._orders[key] = orders  # only now, so that a refused coordinator leaves no state behind
        orders.working.add(order.chunk)
        orders.failed.pop(order.chunk, None)
        if in_work is not None and in_work.learned is not None:
            return [Reply(ticket, LearnAck()), *self._offered(*task, in_work.learned.lesson, now)]
        if in_work is not None:
            return [Reply(ticket, LearnAck())]
        self._on_its_way[task] = _InWork(order.sentences, order.doublings, order.size)
        sealing = order.doublings, order.size
        return [Reply(ticket, LearnAck()), Compute(*task, order.sentences, *sealing)]

    def _refusal(self, sender: Peer, now: float) -> str:
        """Return why a coordinator gets no slot; empty if a slot is free, or was freed for it."""
        if self._leaving:
            return "this peer is leaving"
        if any(self._is_late((job, chunk), now) for job, chunk in self._owed(sender)):
            return "order first whether to push or drop the chunks that were learned for you"
        if self.free > 0 or self._make_place(sender, now):
            return ""
        return "no slot is free"

    def _owed(self, sender: Peer) -> Iterator[_Task]:
        """Yield the learned chunks that wait for a coordinator's decision."""
        for (peer, job), orders in self._orders.items():
            if peer == sender:
                yield from ((job, chunk) for chunk in orders.results)

    def _is_late(self, task: _Task, now: float) -> bool:
        """Return whether a chunk was learned so long ago that it may be dropped for another one."""
        learned = self._learned(*task)
        return learned is not None and now - learned.since > _WORD_WITHIN

    def _learned(self, job: bytes, chunk: int) -> _Learned | None:
        """Return a chunk in progress if it is learned; otherwise None."""
        in_work = self._on_its_way.get((job, chunk))
        return in_work.learned if in_work is not None else None

    def _make_place(self, sender: Peer, now: float) -> bool:
        """Drop an overdue chunk whose coordinators all use more slots here than the sender.

        Return whether a slot was freed.
        """
        slots = Counter[Peer]()
        for (peer, _), orders in self._orders.items():
            slots[peer] += len(orders.working)
        for job, chunk in list(self._on_its_way):
            wanted = self._wanted(job, chunk)
            others = all(slots[peer] > slots[sender] for peer, _ in wanted)
            if others and self._is_late((job, chunk), now):
                self._drop((job, chunk))
                return True
        return False

    def _drop(self, task: _Task) -> None:
        """Drop a chunk in progress, for all coordinators that want it."""
        job, chunk = task
        for key, orders in self._wanted(job, chunk).items():
            orders.working.discard(chunk)
            orders.results.pop(chunk, None)
            self._settle(key, orders)
        del self._on_its_way[task]
        self._writer.give_up(job, chunk)

    def computed(self, job: bytes, chunk: int, outcome: Lesson | str, now: float) -> list[Action]:
        """Report a chunk's outcome to its coordinators: the result, or why learning failed."""
        in_work = self._on_its_way.get((job, chunk))
        if in_work is None:
            return []  # no coordinator wants the chunk any more
        if isinstance(outcome, str):
            del self._on_its_way[job, chunk]
            for orders in self._of(job, chunk):
                orders.working.discard(chunk)
                orders.failed[chunk] = outcome[:_MOST_REASON]
            return self._told(job, now)
        self._on_its_way[job, chunk] = in_work._replace(learned=_Learned(outcome, now))
        if not self._of(job, chunk):
            del self._on_its_way[job, chunk]
        return self._offered(job, chunk, outcome, now)

    def _offered(self, job: bytes, chunk: int, lesson: Lesson, now: float) -> list[Action]:
        """Report the signed result of a chunk to all coordinators that want the chunk."""
        voucher = self._vouch(job, chunk, lesson.tree.root)
        for orders in self._of(job, chunk):
            orders.results[chunk] = Result(chunk, lesson.tree.root, voucher)
        return self._told(job, now)

    def _brought(self, job: bytes, order: PushOrder, now: float) -> list[Action]:
        """Carry out an order to push: send a chunk to its owners, sealed with the vouchers."""
        learned = self._learned(job, order.chunk)
        if learned is None:
            return []
        lesson = learned.lesson
        seal = sealing(order.vouchers, lesson.tree)
        acts = self._writer.push(job, order.chunk, lesson.cut, seal, now, lesson.shards)
        return self._pushed(acts, now)

    def answered(self, number: int, answer: Message | None, now: float) -> list[Action]:
        """Handle the answer to a call; the answer None means a timeout."""
        return self._calls.done(number, answer, now)

    def tick(self, now: float) -> list[Action]:
        """Send the pushes and heartbeats that are due."""
        actions = self._pushed(self._writer.tick(now), now)
        for key, orders in list(self._orders.items()):
            if now - orders.heard > _PATIENCE:
                actions += self._given_up(key, orders)
                del self._orders[key]
            elif now >= orders.next and not orders.asking:
                actions.append(self._beat(key, orders, now))
        return actions

    def _pushed(self, acts: list[writer.WriteAction], now: float) -> list[Action]:
        actions: list[Action] = []
        for act in acts:
            if isinstance(act, Committed):
                actions += self._committed(act, now)
            else:
                number = self._calls.number(partial(self._carried, act.number))
                actions.append(act._replace(number=number))
        return actions

    def _carried(self, number: int, answer: Message | None, now: float) -> list[Action]:
        return self._pushed(self._writer.answered(number, answer, now), now)

    def _committed(self, done: Committed, now: float) -> list[Action]:
        known, learned = self._learned(done.job, done.chunk), Learned(done.chunk, pushed=done.sent)
        self._on_its_way.pop((done.job, done.chunk), None)
        if known is not None:
            lesson = known.lesson
            learned = Learned(done.chunk, lesson.sequences, list(lesson.skips), done.sent)
        for orders in self._of(done.job, done.chunk):
            orders.working.discard(done.chunk)
            orders.results.pop(done.chunk, None)
            orders.done[done.chunk] = learned
        return self._told(done.job, now)

    def _of(self, job: bytes, chunk: int) -> list[_Orders]:
        return list(self._wanted(job, chunk).values())

    def _wanted(self, job: bytes, chunk: int) -> dict[Key, _Orders]:
        return {k: o for k, o in self._orders.items() if k[1] == job and chunk in o.working}

    def _told(self, job: bytes, now: float) -> list[Action]:
        """Send a heartbeat at once to each of a job's coordinators without one in flight."""
        return [
            self._beat(key, orders, now)
            for key, orders in self._orders.items()
            if key[1] == job and not orders.asking
        ]

    def _beat(self, key: Key, orders: _Orders, now: float) -> Call:
        orders.asking, orders.next = True, now + _EVERY
        done = [orders.done[chunk] for chunk in sorted(orders.done)]
        results = [orders.results[chunk] for chunk in sorted(orders.results)]
        awaited = list(self._writer.awaited(key[1], now)[:MOST_AWAITED])
        failed = sorted(orders.failed.items())
        beat = Beat(key[1], sorted(orders.working), done, failed, results, awaited)
        number = self._calls.number(partial(self._heard, key, beat))
        return Call(number, key[0], beat, _TIMEOUT)

    def _heard(self, key: Key, beat: Beat, answer: Message | None, now: float) -> list[Action]:
        orders = self._orders.get(key)
        if orders is None:
            return []
        orders.asking = False
        if not isinstance(answer, BeatAck):
            if not (isinstance(answer, Refusal) or self._leaving):
                return []
            left = self._given_up(key, orders)  # it does not coordinate the job: no decision comes
            self._settle(key, orders)
            return left
        orders.heard = now
        for learned in beat.done:
            orders.done.pop(learned.chunk, None)
        for chunk, _ in beat.failed:
            orders.failed.pop(chunk, None)
        actions: list[Action] = []
        for order in answer.orders:
            if orders.results.pop(order.chunk, None) is not None:
                actions += self._brought(key[1], order, now)
        for chunk in answer.leave:
            if chunk in orders.working:
                actions += self._leave(key[1], chunk, orders)
        told = {result.chunk for result in beat.results}
        if orders.done or orders.failed or orders.results.keys() - told:
            return [*actions, self._beat(key, orders, now)]
        self._settle(key, orders)
        return actions

    def _settle(self, key: Key, orders: _Orders) -> None:
        """Forget a coordinator that wants nothing more and has acknowledged everything."""
        if not (orders.working or orders.done or orders.failed):
            del self._orders[key]

    def _given_up(self, key: Key, orders: _Orders) -> list[Action]:
        """Drop the results that wait for the decision of a coordinator that will never decide."""
        actions: list[Action] = []
        for chunk in list(orders.results):
            actions += self._leave(key[1], chunk, orders)
        return actions

    def _leave(self, job: bytes, chunk: int, orders: _Orders) -> list[Action]:
        """Release a coordinator's chunk, and stop work on it if no other coordinator wants it."""
        orders.working.discard(chunk)
        orders.results.pop(chunk, None)
        if self._of(job, chunk):
            return []
        self._on_its_way.pop((job, chunk), None)
        if self._writer.give_up(job, chunk):
            return []  # the chunk was being pushed, so there is no work to stop
        return [Stop(job, chunk)]
