"""The coordinator of a job: it leases chunks to compute peers and handles their heartbeats.

`Schedule` decides which worker gets which chunk, and `DeltaAgreement` which result counts. The
coordinator turns these decisions into calls, and the answers into events.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from pyroaring import BitMap

from giaann_p2p.errors import MessageError
from giaann_p2p.swarm.training.chunks import ChunkState
from giaann_p2p.swarm.training.decisions import Action, Finished, GaveUp, Lease, Revoke
from giaann_p2p.swarm.training.delta_agreement import DeltaAgreement
from giaann_p2p.swarm.training.schedule import MOST_SLOTS, Schedule
from giaann_p2p.swarm.training.trust import Trust
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Refusal
from giaann_p2p.swarm.wire.pending import PendingCalls
from giaann_p2p.swarm.wire.training_messages import (
    Beat,
    BeatAck,
    LearnAck,
    Learned,
    PushOrder,
    Result,
    learn_order,
)

_TIMEOUT = 4.0
_DISPUTED = "compute peers reported different results, and no other peer is left to settle it"

Sentences = Callable[[int], list[str]]
"""A function that returns a chunk's sentences."""


class Over(NamedTuple):
    """The job is over: all its chunks are committed, except those that were given up."""

    given_up: Mapping[int, tuple[str, ...]]
    """The chunks that were given up, each with the reasons."""


class Lied(NamedTuple):
    """A peer's result for a chunk differs from the one that other peers agreed on.

    The peer gets no more chunks.
    """

    peer: Peer
    chunk: int


JobAction = Call | Learned | Lied | Over
"""What a coordinator returns: calls to make, and news of the job. Each committed chunk is returned
as `Learned` exactly once, so these may be counted."""


class Coordinator:
    """The coordinator of one job. Its methods handle events, and return calls and news."""

    def __init__(
        self,
        job: bytes,
        schedule: Schedule,
        sentences: Sentences,
        agreement: DeltaAgreement,
        trust: Trust,
        rules: Callable[[], Rules],
        size: int,
    ) -> None:
        """Begin; `rules` returns the swarm's rules by the newest edition that this peer knows.

        `size`: the number of sentences in a chunk of the job.
        """
        self._size = size
        self.job, self._schedule, self._sentences = job, schedule, sentences
        self._agreement, self._trust, self._rules = agreement, trust, rules
        self._calls = PendingCalls[Message | None, JobAction]()
        self._workers: dict[Peer, int] = {}  # present compute peers, with their slots
        self._left: dict[Peer, set[int]] = {}  # chunks to revoke by the next heartbeat's answer
        self._given_up: dict[int, tuple[str, ...]] = {}
        self._doublings: dict[int, int] = {}
        """For each chunk in work, the number of doublings of the layout in which it is sealed. It
        is fixed when the chunk is first leased, because all peers that learn the chunk must produce
        the same seal."""
        self._accepted: dict[int, set[Peer]] = {}
        """The peers that accepted an order to learn each chunk in work."""
        self._done: dict[Peer, BitMap] = {}

    @property
    def done(self) -> Mapping[Peer, BitMap]:
        """The chunks that each worker was the first to report as committed."""
        return self._done

    def read(self, chunks: int, to_the_end: bool, now: float) -> list[JobAction]:
        """Handle progress in reading the text: it has `chunks` chunks so far.

        `to_the_end` means that these are all.
        """
        actions = self._schedule.grown(chunks, now)
        if to_the_end:
            actions += self._schedule.ended(now)
        return self._acts(actions)

    def seen(self, workers: Mapping[Peer, int], now: float) -> list[JobAction]:
        """Handle the list of compute peers that are present now, with the slots of each.

        A peer that also works for other coordinators may have fewer free slots, and declines the
        chunks that it has no room for.
        """
        actions: list[Action] = []
        away = self._trust.sends_away
        trusted = {peer: told for peer, told in workers.items() if not away(peer)}
        for peer in sorted(self._workers.keys() - trusted.keys()):
            actions += self._gone(peer, now)
        for peer, told in sorted(trusted.items()):
            slots = min(told, MOST_SLOTS)  # with 0 slots, it finishes its chunks
            if slots != self._workers.get(peer, 0):
                self._workers[peer] = slots
                actions += self._schedule.joined(peer, slots, now)
        return self._acts(actions)

    def announced(self, peer: Peer, now: float) -> list[JobAction]:
        """Handle a new directory record, or a new pulse, of a worker as a sign of life.

        A worker that never received its only order sends no heartbeats, so without this it would
        count as silent for ever.
        """
        return self._acts(self._schedule.heartbeat(peer, (), now)) if peer in self._workers else []

    def lost(self, peer: Peer, now: float) -> list[JobAction]:
        """Handle a worker that cannot be reached: its chunks are leased to other workers."""
        return self._acts(self._schedule.lost(peer, now))

    def tick(self, now: float) -> list[JobAction]:
        """Handle the passing of time: expire leases and grant new ones."""
        return self._acts(self._schedule.tick(now))

    def answered(self, number: int, answer: Message | None, now: float) -> list[JobAction]:
        """Handle the answer to a call; the answer None means a timeout."""
        return self._calls.done(number, answer, now)

    def beat(self, peer: Peer, beat: Beat, now: float) -> tuple[Message, list[JobAction]]:
        """Handle a worker's heartbeat; return the answer to it, and calls and news that follow."""
        if beat.job != self.job or peer not in self._workers:
            return Refusal("this peer does not coordinate this job with you as a worker"), []
        actions: list[Action] = []
        news: list[JobAction] = []
        orders: list[PushOrder] = []
        try:
            actions += self._schedule.heartbeat(peer, beat.working, now)
            for learned in beat.done:
                known = self._schedule.state(learned.chunk) is ChunkState.COMMITTED
                actions += self._schedule.done(peer, learned.chunk, now)
                self._agreement.close(learned.chunk)
                self._doublings.pop(learned.chunk, None)
                self._accepted.pop(learned.chunk, None)
                if not known:
                    self._done.setdefault(peer, BitMap()).add(learned.chunk)
                    news.append(learned)
            for chunk, reason in beat.failed:
                actions += self._schedule.failed(peer, chunk, reason, now)
            for result in beat.results:
                actions += self._weighed(peer, result, orders, news, now)
        except MessageError as error:
            return Refusal(str(error)), [*news, *self._acts(actions)]
        acts = [*news, *self._acts(actions)]
        return BeatAck(sorted(self._left.pop(peer, ())), orders), acts

    def _weighed(
        self, peer: Peer, result: Result, orders: list[PushOrder], news: list[JobAction], now: float
    ) -> list[Action]:
        """Decide on a worker's result: order to push it, or let others learn the chunk first.

        An order to push is added to `orders`, and each liar that this reveals is added to `news`.
        """
        chunk = result.chunk
        if not self._schedule.has(peer, chunk):
            return [Revoke(peer, chunk)]
        if self._rules().layout.doublings and peer not in self._accepted.get(chunk, ()):
            # An earlier coordinator may have ordered it, in a layout that is unknown here. So it
            # must not be compared with other results.
            return [Revoke(peer, chunk), *self._schedule.declined(peer, chunk, now)]
        self._agreement.hear(peer, result)
        is_last = not self._schedule.others(peer, chunk)
        verdict = self._agreement.verdict(peer, chunk, is_last)
        if verdict is None:
            if is_last and self._agreement.is_disputed(chunk):
                return [Revoke(peer, chunk), *self._schedule.failed(peer, chunk, _DISPUTED, now)]
            return [Revoke(peer, chunk), *self._schedule.vouched(peer, chunk, now)]
        orders.append(PushOrder(chunk, verdict.vouchers))
        actions: list[Action] = []
        for liar in verdict.liars:
            news.append(Lied(liar, chunk))
            actions += self._gone(liar, now)
        return actions

    def _gone(self, peer: Peer, now: float) -> list[Action]:
        self._workers.pop(peer, None)
        self._left.pop(peer, None)
        return self._schedule.left(peer, now)

    def _acts(self, actions: list[Action]) -> list[JobAction]:
        acts: list[JobAction] = []
        for action in actions:
            if isinstance(action, Lease):
                acts.append(self._learn(Peer(action.worker), action.chunk))
            elif isinstance(action, Revoke):
                self._left.setdefault(Peer(action.worker), set()).add(action.chunk)
            elif isinstance(action, GaveUp):
                self._given_up[action.chunk] = action.reasons
            elif isinstance(action, Finished):
                acts.append(self._over())
        return acts

    def _over(self) -> Over:
        failed = self._schedule.chunks(
            ChunkState.FAILED
        )  # without chunks that were given up, but that a late worker committed after all
        return Over({chunk: self._given_up[chunk] for chunk in failed})

    def _learn(self, peer: Peer, chunk: int) -> Call:
        self._left.get(peer, set()).discard(chunk)
        rules = self._rules()
        doublings = self._doublings.setdefault(chunk, rules.layout.doublings)
        size = rules.cut_as(self._size)
        question = learn_order(self.job, chunk, self._sentences(chunk), doublings, size)
        return Call(self._calls.number(partial(self._taken, peer, chunk)), peer, question, _TIMEOUT)

    def _taken(self, peer: Peer, chunk: int, answer: Message | None, now: float) -> list[JobAction]:
        """Handle the answer to an order to learn a chunk.

        If the order was refused, or timed out, the chunk waits again. If the worker accepted the
        order after all, its next heartbeat names the chunk, and the worker keeps the chunk unless
        another worker has it by then.
        """
        if isinstance(answer, LearnAck):
            self._accepted.setdefault(chunk, set()).add(peer)
        if isinstance(answer, LearnAck) or peer not in self._workers:
            return []
        return self._acts(self._schedule.declined(peer, chunk, now))
