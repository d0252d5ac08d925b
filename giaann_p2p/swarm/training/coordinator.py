"""The coordinator of a job: it leases chunks to compute peers, and hears how they get on.

What it decides, `Schedule` decides; here its decisions become calls, and answers events.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from pyroaring import BitMap

from giaann_p2p.errors import MessageError
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.chunks import State
from giaann_p2p.swarm.decisions import Action, Finished, GaveUp, Lease, Revoke
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.jury import Jury
from giaann_p2p.swarm.messages import (
    Beat,
    Bring,
    Came,
    Heard,
    Learn,
    Learned,
    Message,
    Refused,
    Taken,
)
from giaann_p2p.swarm.schedule import MOST_SLOTS, Schedule
from giaann_p2p.swarm.trust import Trust

_TIMEOUT = 4.0
_DISPUTED = "compute peers came to different results, and there is no other one to settle it"

Sentences = Callable[[int], list[str]]
"""Returns a chunk's sentences."""


class Over(NamedTuple):
    """All chunks are committed, but for those that were given up, and why."""

    given_up: Mapping[int, tuple[str, ...]]


class Lied(NamedTuple):
    """What a peer says a chunk came to is not what others came to; it learns nothing more."""

    peer: Peer
    chunk: int


Act = Call | Learned | Lied | Over
"""What is said to be learned is so for the first time: it may be counted."""


class Coordinator:
    """See the module."""

    def __init__(
        self, job: bytes, schedule: Schedule, sentences: Sentences, jury: Jury, trust: Trust
    ) -> None:
        self.job, self._schedule, self._sentences = job, schedule, sentences
        self._jury, self._trust = jury, trust
        self._calls = Desk[Message | None, Act]()
        self._workers: dict[Peer, int] = {}  # with their slots
        self._left: dict[Peer, set[int]] = {}  # what a worker is told to leave, when it next beats
        self._given_up: dict[int, tuple[str, ...]] = {}
        self._done: dict[Peer, BitMap] = {}

    @property
    def done(self) -> Mapping[Peer, BitMap]:
        """The chunks of which each was the first to say that they are with their owners."""
        return self._done

    def read(self, chunks: int, to_the_end: bool, now: float) -> list[Act]:
        """The text has so many chunks so far, or in all."""
        actions = self._schedule.grown(chunks, now)
        if to_the_end:
            actions += self._schedule.ended(now)
        return self._acts(actions)

    def seen(self, workers: Mapping[Peer, int], now: float) -> list[Act]:
        """Learn which compute peers are there, and how many chunks each works on at a time.

        One with other coordinators may have less room than that; it declines what is too much.
        """
        actions: list[Action] = []
        away = self._trust.sends_away
        trusted = {peer: told for peer, told in workers.items() if not away(peer)}
        for peer in sorted(self._workers.keys() - trusted.keys()):
            actions += self._gone(peer, now)
        for peer, told in sorted(trusted.items()):
            slots = min(told, MOST_SLOTS)  # without any, it finishes what it has
            if slots != self._workers.get(peer, 0):
                self._workers[peer] = slots
                actions += self._schedule.joined(peer, slots, now)
        return self._acts(actions)

    def announced(self, peer: Peer, now: float) -> list[Act]:
        """A worker renewed its record: so it is there, though it may have nothing to tell of.

        Without this, one whose only order was lost on its way would be silent for ever.
        """
        return self._acts(self._schedule.heartbeat(peer, (), now)) if peer in self._workers else []

    def lost(self, peer: Peer, now: float) -> list[Act]:
        """A worker cannot be reached: others learn what it had, unless it is heard of."""
        return self._acts(self._schedule.lost(peer, now))

    def tick(self, now: float) -> list[Act]:
        """Do what is due."""
        return self._acts(self._schedule.tick(now))

    def answered(self, number: int, answer: Message | None, now: float) -> list[Act]:
        """Go on with an answer, or with None when there was none in time."""
        return self._calls.done(number, answer, now)

    def beat(self, peer: Peer, beat: Beat, now: float) -> tuple[Message, list[Act]]:
        """Hear of a worker; return the answer to it, and what follows."""
        if beat.job != self.job or peer not in self._workers:
            return Refused("this is not known here as a worker at this job"), []
        actions: list[Action] = []
        news: list[Act] = []
        bring: list[Bring] = []
        try:
            actions += self._schedule.heartbeat(peer, beat.working, now)
            for learned in beat.done:
                known = self._schedule.state(learned.chunk) is State.COMMITTED
                actions += self._schedule.done(peer, learned.chunk, now)
                self._jury.close(learned.chunk)
                if not known:
                    self._done.setdefault(peer, BitMap()).add(learned.chunk)
                    news.append(learned)
            for chunk, reason in beat.failed:
                actions += self._schedule.failed(peer, chunk, reason, now)
            for came in beat.came:
                actions += self._weighed(peer, came, bring, news, now)
        except MessageError as error:
            return Refused(str(error)), [*news, *self._acts(actions)]
        acts = [*news, *self._acts(actions)]
        return Heard(sorted(self._left.pop(peer, ())), bring), acts

    def _weighed(
        self, peer: Peer, came: Came, bring: list[Bring], news: list[Act], now: float
    ) -> list[Action]:
        """Decide whether what a peer came to is brought to its owners, or learned again first."""
        chunk = came.chunk
        if not self._schedule.has(peer, chunk):
            return [Revoke(peer, chunk)]
        self._jury.hear(peer, came)
        is_last = not self._schedule.others(peer, chunk)
        verdict = self._jury.verdict(peer, chunk, is_last)
        if verdict is None:
            if is_last and self._jury.is_disputed(chunk):
                return [Revoke(peer, chunk), *self._schedule.failed(peer, chunk, _DISPUTED, now)]
            return [Revoke(peer, chunk), *self._schedule.vouched(peer, chunk, now)]
        bring.append(Bring(chunk, verdict.vouchers))
        actions: list[Action] = []
        for liar in verdict.liars:
            news.append(Lied(liar, chunk))
            actions += self._gone(liar, now)
        return actions

    def _gone(self, peer: Peer, now: float) -> list[Action]:
        self._workers.pop(peer, None)
        self._left.pop(peer, None)
        return self._schedule.left(peer, now)

    def _acts(self, actions: list[Action]) -> list[Act]:
        acts: list[Act] = []
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
        failed = self._schedule.chunks(State.FAILED)  # a late worker may have brought some since
        return Over({chunk: self._given_up[chunk] for chunk in failed})

    def _learn(self, peer: Peer, chunk: int) -> Call:
        self._left.get(peer, set()).discard(chunk)
        question = Learn(self.job, chunk, self._sentences(chunk))
        return Call(self._calls.number(partial(self._taken, peer, chunk)), peer, question, _TIMEOUT)

    def _taken(self, peer: Peer, chunk: int, answer: Message | None, now: float) -> list[Act]:
        """Go on when an order was refused, or got no answer: then the worker is gone, as a rule.

        If it has taken the order all the same, it names the chunk when it beats, and keeps it
        unless another has it by then.
        """
        if isinstance(answer, Taken) or peer not in self._workers:
            return []
        return self._acts(self._schedule.declined(peer, chunk, now))
