"""A compute peer at work: it takes chunks, has them learned, and brings them to their owners.

It tells each coordinator how it goes, every few seconds and when something is done. What a chunk
came to it signs, and tells; brought to its owners it is only when a coordinator says so, with the
words of others who came to the same, if it has asked for them (see `trust`). If the owners of a
shard cannot be reached, it goes on trying. A coordinator that is not heard of for long has gone;
what is on its way to the owners by then gets there, for it is of use to whoever resumes the job.

Nobody keeps the slots from others by never saying a word, or one that no owner heeds: whoever owes
a word gets no more slots, and where none is free, what has been learned for a while makes place for
a coordinator that has fewer slots. What is of use of it is learned again.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from giaann_p2p.store.seal import Tree
from giaann_p2p.swarm import writer
from giaann_p2p.swarm.actions import Action, Call, Compute, Reply, Stop
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import (
    Beat,
    Bring,
    Came,
    Heard,
    Learn,
    Learned,
    Message,
    Refused,
    Skip,
    Taken,
)
from giaann_p2p.swarm.voucher import Vouch, sealing
from giaann_p2p.swarm.writer import Committed, Cut, Writer

_EVERY = 3.0
_TIMEOUT = 4.0
_PATIENCE = 120.0
"""Seconds without a word of a coordinator after which it has gone."""
_WORD_WITHIN = 5.0
"""Seconds from when a chunk is learned until it is left or committed, as a rule and by far: a word
takes a round trip, and a push too."""
_MOST_REASON = 200
"""Characters that a beat carries for each chunk that failed."""

Key = tuple[Peer, bytes]
"""A coordinator and its job."""
_Task = tuple[bytes, int]
"""A job and a chunk of it."""


class Lesson(NamedTuple):
    """What a chunk's text came to."""

    cut: Cut
    tree: Tree
    sequences: int = 0
    skips: Sequence[Skip] = ()


class _Learned(NamedTuple):
    """A chunk that is on its way to its owners, or waits for a word."""

    lesson: Lesson
    since: float


@dataclass
class _Orders:
    """What one coordinator wants."""

    heard: float
    next: float
    working: set[int] = field(default_factory=set)
    came: dict[int, Came] = field(default_factory=dict)
    """What waits for a word on whether it is to be brought to its owners."""
    done: dict[int, Learned] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    asking: bool = False


class Worker:
    """See the module."""

    def __init__(self, slots: int, pushes: Writer, vouch: Vouch) -> None:
        """Make one that works on so many chunks at a time, whoever wants them."""
        self._slots, self._writer, self._vouch = slots, pushes, vouch
        self._calls = Desk[Message | None, Action]()
        self._orders: dict[Key, _Orders] = {}
        self._on_its_way: dict[_Task, _Learned | None] = {}
        """Chunks that are computed or pushed, each once, whoever wants them."""
        self._leaving = False

    @property
    def free(self) -> int:
        """How many chunks more it takes."""
        return 0 if self._leaving else self._slots - len(self._on_its_way)

    @property
    def busy(self) -> int:
        """How many chunks are computed or pushed."""
        return len(self._on_its_way)

    @property
    def untold(self) -> bool:
        """Whether a coordinator has not heard of all that is done."""
        return any(orders.done or orders.failed or orders.came for orders in self._orders.values())

    def leave(self) -> None:
        """Take no more chunks; those that it has it finishes."""
        self._leaving = True

    def asked(self, ticket: int, sender: Peer, order: Learn, now: float) -> list[Action]:
        """Take a chunk, if there is a slot free."""
        key, task = (sender, order.job), (order.job, order.chunk)
        orders = self._orders.get(key, _Orders(now, now + _EVERY))
        orders.heard = now
        if order.chunk in orders.working or order.chunk in orders.done:
            return [Reply(ticket, Taken())]
        if task not in self._on_its_way and (why := self._refusal(sender, now)):
            return [Reply(ticket, Refused(why))]
        self._orders[key] = orders  # not before: who is refused leaves nothing behind
        orders.working.add(order.chunk)
        orders.failed.pop(order.chunk, None)
        if (learned := self._on_its_way.get(task)) is not None:
            return [Reply(ticket, Taken()), *self._offered(*task, learned.lesson, now)]
        if task in self._on_its_way:
            return [Reply(ticket, Taken())]
        self._on_its_way[task] = None
        return [Reply(ticket, Taken()), Compute(order.job, order.chunk, order.sentences)]

    def _refusal(self, sender: Peer, now: float) -> str:
        """Tell why a coordinator gets no slot; nothing if one is free, if need be another's."""
        if self._leaving:
            return "this peer is leaving"
        if any(self._is_late((job, chunk), now) for job, chunk in self._owed(sender)):
            return "say first whether to bring what was learned for you, or to leave it"
        if self.free > 0 or self._make_place(sender, now):
            return ""
        return "no slot is free"

    def _owed(self, sender: Peer) -> Iterator[_Task]:
        """Return the chunks that wait for a coordinator's word."""
        for (peer, job), orders in self._orders.items():
            if peer == sender:
                yield from ((job, chunk) for chunk in orders.came)

    def _is_late(self, task: _Task, now: float) -> bool:
        """Tell whether a chunk has been learned for so long that it makes place for another."""
        learned = self._on_its_way.get(task)
        return learned is not None and now - learned.since > _WORD_WITHIN

    def _make_place(self, sender: Peer, now: float) -> bool:
        """Give up the first chunk that is late and is theirs who have more slots than a sender."""
        slots = Counter[Peer]()
        for (peer, _), orders in self._orders.items():
            slots[peer] += len(orders.working)
        for job, chunk in list(self._on_its_way):
            wanted = self._wanted(job, chunk)
            others = all(slots[peer] > slots[sender] for peer, _ in wanted)
            if others and self._is_late((job, chunk), now):
                for key, orders in wanted.items():
                    orders.working.discard(chunk)
                    orders.came.pop(chunk, None)
                    self._settle(key, orders)
                del self._on_its_way[job, chunk]
                self._writer.give_up(job, chunk)
                return True
        return False

    def computed(self, job: bytes, chunk: int, outcome: Lesson | str, now: float) -> list[Action]:
        """Tell what a chunk came to, or why it came to nothing."""
        if (job, chunk) not in self._on_its_way:
            return []  # nobody wants it any longer
        if isinstance(outcome, str):
            del self._on_its_way[job, chunk]
            for orders in self._of(job, chunk):
                orders.working.discard(chunk)
                orders.failed[chunk] = outcome[:_MOST_REASON]
            return self._told(job, now)
        self._on_its_way[job, chunk] = _Learned(outcome, now)
        if not self._of(job, chunk):
            del self._on_its_way[job, chunk]
        return self._offered(job, chunk, outcome, now)

    def _offered(self, job: bytes, chunk: int, lesson: Lesson, now: float) -> list[Action]:
        """Tell who wants a chunk what it came to."""
        voucher = self._vouch(job, chunk, lesson.tree.root)
        for orders in self._of(job, chunk):
            orders.came[chunk] = Came(chunk, lesson.tree.root, voucher)
        return self._told(job, now)

    def _brought(self, job: bytes, bring: Bring, now: float) -> list[Action]:
        """Bring a chunk to its owners."""
        learned = self._on_its_way.get((job, bring.chunk))
        if learned is None:
            return []
        lesson = learned.lesson
        seal = sealing(bring.vouchers, lesson.tree)
        return self._pushed(self._writer.push(job, bring.chunk, lesson.cut, seal, now), now)

    def answered(self, number: int, answer: Message | None, now: float) -> list[Action]:
        """Go on with an answer, or with None when there was none in time."""
        return self._calls.done(number, answer, now)

    def tick(self, now: float) -> list[Action]:
        """Push and tell what is due."""
        actions = self._pushed(self._writer.tick(now), now)
        for key, orders in list(self._orders.items()):
            if now - orders.heard > _PATIENCE:
                actions += self._given_up(key, orders)
                del self._orders[key]
            elif now >= orders.next and not orders.asking:
                actions.append(self._beat(key, orders, now))
        return actions

    def _pushed(self, acts: list[writer.Act], now: float) -> list[Action]:
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
        on_its_way = self._on_its_way.pop((done.job, done.chunk), None)
        learned = Learned(done.chunk, pushed=done.sent)
        if on_its_way is not None:
            lesson = on_its_way.lesson
            learned = Learned(done.chunk, lesson.sequences, list(lesson.skips), done.sent)
        for orders in self._of(done.job, done.chunk):
            orders.working.discard(done.chunk)
            orders.came.pop(done.chunk, None)
            orders.done[done.chunk] = learned
        return self._told(done.job, now)

    def _of(self, job: bytes, chunk: int) -> list[_Orders]:
        return list(self._wanted(job, chunk).values())

    def _wanted(self, job: bytes, chunk: int) -> dict[Key, _Orders]:
        return {k: o for k, o in self._orders.items() if k[1] == job and chunk in o.working}

    def _told(self, job: bytes, now: float) -> list[Action]:
        """Tell the job's coordinators at once."""
        return [
            self._beat(key, orders, now)
            for key, orders in self._orders.items()
            if key[1] == job and not orders.asking
        ]

    def _beat(self, key: Key, orders: _Orders, now: float) -> Call:
        orders.asking, orders.next = True, now + _EVERY
        done = [orders.done[chunk] for chunk in sorted(orders.done)]
        came = [orders.came[chunk] for chunk in sorted(orders.came)]
        beat = Beat(key[1], sorted(orders.working), done, sorted(orders.failed.items()), came)
        number = self._calls.number(partial(self._heard, key, beat))
        return Call(number, key[0], beat, _TIMEOUT)

    def _heard(self, key: Key, beat: Beat, answer: Message | None, now: float) -> list[Action]:
        orders = self._orders.get(key)
        if orders is None:
            return []
        orders.asking = False
        if not isinstance(answer, Heard):
            if not (isinstance(answer, Refused) or self._leaving):
                return []
            left = self._given_up(key, orders)  # who does not lead the job says no word on it
            self._settle(key, orders)
            return left
        orders.heard = now
        for learned in beat.done:
            orders.done.pop(learned.chunk, None)
        for chunk, _ in beat.failed:
            orders.failed.pop(chunk, None)
        actions: list[Action] = []
        for bring in answer.bring:
            if orders.came.pop(bring.chunk, None) is not None:
                actions += self._brought(key[1], bring, now)
        for chunk in answer.leave:
            if chunk in orders.working:
                actions += self._leave(key[1], chunk, orders)
        told = {came.chunk for came in beat.came}
        if orders.done or orders.failed or orders.came.keys() - told:
            return [*actions, self._beat(key, orders, now)]
        self._settle(key, orders)
        return actions

    def _settle(self, key: Key, orders: _Orders) -> None:
        """Forget a coordinator that wants no more, and knows all."""
        if not (orders.working or orders.done or orders.failed):
            del self._orders[key]

    def _given_up(self, key: Key, orders: _Orders) -> list[Action]:
        """Leave what waits for the word of a coordinator that has gone."""
        actions: list[Action] = []
        for chunk in list(orders.came):
            actions += self._leave(key[1], chunk, orders)
        return actions

    def _leave(self, job: bytes, chunk: int, orders: _Orders) -> list[Action]:
        """Go no further with a chunk that a coordinator wants no longer, nor anybody else."""
        orders.working.discard(chunk)
        orders.came.pop(chunk, None)
        if self._of(job, chunk):
            return []
        self._on_its_way.pop((job, chunk), None)
        if self._writer.give_up(job, chunk):
            return []  # it was learned by then
        return [Stop(job, chunk)]
