"""Rate limits on what authors push to an owner: a budget of sentences, and one of new jobs.

Learning is additive, so the author that pushes most has the most influence. An honest compute peer
is bounded by its parser; a peer that only pushes is not. So an owner gives each author a rate:

1. An author with standing has a rate of its own, above what an honest compute peer learns, so a
   flood by others does not slow it.
2. A newcomer has a low rate. All newcomers together share a limit (by default twice one newcomer's
   rate of sentences), however many names they use.
3. The cost of a delta, in sentences, follows from the strength that it adds (see `cost_of`). A
   connection that one chunk strengthens again and again costs more: a chunk of 64 copies of a
   sentence costs some 960 sentences.
4. The cost is known only once the delta is unpacked. So the cost of one chunk is reserved before
   that, and the difference is settled after it, which may take an account below zero. A large
   chunk comes in several pushes; each reserves its part, or the later ones would be refused, after
   their rows have travelled.
5. A new job is charged once to its author, and not again for the other parts of its first chunk,
   whose shards do not have the job yet, nor for chunks that arrive before the first one is stored.

A push beyond the budget is refused with the seconds to wait, after which its writer retries.
"""

from collections.abc import Callable, Collection

import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.spec import CHUNK, increment
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import BUSY, MOST_AGAIN, Push, PushFrom, Refusal

SENTENCE = 256
"""Strength that counts as one sentence, in steps. A step is the strength that two neighbouring
words add; English sentences have some 200 steps."""
LEAST = 16
"""Minimum cost of a push, in sentences. An owner of few shards sees little of each chunk's
strength, but still writes to its disk."""
MOST = 64
"""Maximum cost of a push, as a multiple of what it reserves. A higher cost would let the pushes of
one chunk by a stranger use up the shared budget of all newcomers for days."""
MOST_AUTHORS = 4096
"""Maximum number of authors with an account at one owner."""
MOST_PARTS = 8
"""Maximum number of pushes that reserve the cost of one chunk together. More would let an author
have more pushes under way before the true cost of the first one is known."""
MOST_REMEMBERED = 8
"""Maximum number of jobs per author that are remembered as charged. An author that pushes more new
jobs at the same time may be charged for one of them twice."""
_BURST = 16.0
"""Capacity of an account of sentences, in seconds of its rate, but at least one chunk. An account
of jobs has a capacity of one minute's worth."""
_MINUTE = 60.0
_STEP = increment(1)


def cost_of(weight: float, reserved: float) -> float:
    """Return the cost in sentences of a push with rows of this weight; `reserved` bounds it."""
    return min(max(weight / SENTENCE, LEAST), MOST * reserved)


def weight_of(delta: Delta, chunk: int) -> float:
    """Return the weight of a delta's rows, however they were cut; chunks have `chunk` sentences.

    A connection of s steps weighs s, or s * s * CHUNK / chunk if that is more. So repetition beyond
    chunk / CHUNK steps is expensive: larger chunks repeat more. A weight of SENTENCE costs one
    sentence.
    """
    steps = delta.strength / _STEP
    return float(np.sum(steps * np.maximum(steps * (CHUNK / chunk), 1.0)))


def reserve_of(chunk: int, part: float) -> float:
    """Return the cost in sentences that a push with a part of a chunk's rows reserves.

    For chunks of the usual size, it is always the cost of a whole chunk.
    """
    return max(part * chunk, chunk / MOST_PARTS, CHUNK)


class Account:
    """A token bucket that refills at `rate` per second, up to `most`. It may be overdrawn."""

    def __init__(self, rate: float, most: float, now: float) -> None:
        self.rate, self.most = rate, most
        self._level, self._at = most, now

    def __repr__(self) -> str:
        return f"<Account: {self._level:,.0f} of {self.most:,.0f}, {self.rate:,.2f} a second>"

    def level(self, now: float) -> float:
        """Refill the account for the elapsed time, and return the amount that may be spent now."""
        if now > self._at:
            self._level = min(self.most, self._level + (now - self._at) * self.rate)
            self._at = now
        return self._level

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until an amount may be spent; 0 if it may be spent now."""
        return max(0.0, (min(amount, self.most) - self.level(now)) / self.rate)

    def spend(self, amount: float) -> None:
        """Take an amount from the account; a negative amount is a refund."""
        self._level = min(self.most, self._level - amount)


class Purse:
    """Two accounts, for sentences and for new jobs, of one author or of all newcomers together."""

    def __init__(self, sentences: float, jobs: float, chunk: int, now: float) -> None:
        """Open full accounts with these rates of sentences and of new jobs, both per minute.

        `chunk` is the number of sentences in a chunk.
        """
        per_second = sentences / _MINUTE
        self.sentences = Account(per_second, max(chunk, per_second * _BURST), now)
        self.jobs = Account(jobs / _MINUTE, max(1.0, jobs), now)
        self._charged: dict[bytes, None] = {}  # jobs, the oldest first

    def has_charged(self, job: bytes) -> bool:
        """Return whether this purse was charged for a job recently."""
        return job in self._charged

    def charge(self, job: bytes) -> None:
        """Charge a new job and remember it; beyond the limit, forget the oldest one."""
        self.jobs.spend(1)
        while len(self._charged) >= MOST_REMEMBERED:
            del self._charged[next(iter(self._charged))]
        self._charged[job] = None

    def wait(self, sentences: float, begins_job: bool, now: float) -> float:
        """Return the seconds until a push of `sentences`, and perhaps a new job, is allowed."""
        return max(
            self.sentences.wait(sentences, now), self.jobs.wait(1, now) if begins_job else 0.0
        )

    def is_full(self, now: float) -> bool:
        """Return whether both accounts are full, because nothing was spent recently."""
        return all(one.level(now) >= one.most for one in (self.sentences, self.jobs))


class Bill:
    """The charge for one push: a cost is reserved at first, and the true cost is settled later.

    The true cost is computed when the delta is unpacked, perhaps in another thread.
    """

    def __init__(self, purses: Collection[Purse], chunk: int, reserved: float) -> None:
        """Reserve a cost in each purse; a chunk has `chunk` sentences."""
        self._purses, self._chunk, self._reserved = purses, chunk, reserved
        self._weight = 0.0
        """The weight of the rows that were unpacked so far, perhaps in several parts."""
        self._spend(reserved)

    def weighing(self, check: Callable[[Update], None]) -> Callable[[Update], None]:
        """Return a function that runs `check` on an update, and then weighs it."""

        def weigh(update: Update) -> None:
            check(update)
            self._weight += weight_of(update.delta, self._chunk)

        return weigh

    def settle(self) -> None:
        """Charge the true cost of the push instead of the reserved one.

        A delta that was rejected, or did not come, costs the minimum.
        """
        self._spend(cost_of(self._weight, self._reserved) - self._reserved)

    def _spend(self, sentences: float) -> None:
        for purse in self._purses:
            purse.sentences.spend(sentences)


class PushBudget:
    """One owner's limits on pushes: a budget for each author, and one that all newcomers share."""

    def __init__(self, settings: Settings, chunk: int, now: float) -> None:
        """Begin with full accounts; `chunk` is the number of sentences in a chunk."""
        self.refused = 0
        """Number of pushes refused so far."""
        self.chunk = chunk
        """The number of sentences in a chunk."""
        self._settings = settings
        self._newcomers = Purse(settings.newcomers_sentences, settings.newcomers_jobs, chunk, now)
        self._authors: dict[tuple[Peer, bool], Purse] = {}

    def __repr__(self) -> str:
        return f"<PushBudget: {len(self._authors):,} authors, {self.refused:,} pushes refused>"

    def bill(
        self,
        author: Peer,
        stands: bool,
        push: Push | PushFrom,
        sets: Collection[Applied],
        now: float,
        part: float = 1.0,
    ) -> Bill | Refusal:
        """Charge a push to its author; return the bill, or a refusal if the budget is spent.

        `part` is the fraction of this peer's shards that the push has rows for.

        `sets` are the chunks of the push's shards that are held here. A job is new unless all of
        them have it, or this author was charged for it recently.
        """
        purses = self._purses(author, stands, now)
        is_here = bool(sets) and all(one.of(push.job) for one in sets)
        is_new = not is_here and not purses[0].has_charged(push.job)
        reserved = reserve_of(self.chunk, part)
        if wait := max(purse.wait(reserved, is_new, now) for purse in purses):
            self.refused += 1
            return self._refusal(stands, wait)
        if is_new:
            for purse in purses:
                purse.charge(push.job)
        return Bill(purses, self.chunk, reserved)

    def widen(self, chunk: int) -> None:
        """Raise the number of sentences in a chunk."""
        self.chunk = chunk
        for purse in [self._newcomers, *self._authors.values()]:
            purse.sentences.most = max(purse.sentences.most, chunk)

    def _refusal(self, stands: bool, wait: float) -> Refusal:
        again = min(wait, MOST_AGAIN)
        mine = self._settings
        rates = (
            f"an author with standing may push {mine.standing_sentences:,.0f} sentences and "
            f"{mine.standing_jobs:,.0f} new jobs a minute to this peer"
            if stands
            else f"a newcomer may push {mine.newcomer_sentences:,.0f} sentences and "
            f"{mine.newcomer_jobs:,.0f} new jobs a minute to this peer, and all newcomers together "
            f"{mine.newcomers_sentences:,.0f} and {mine.newcomers_jobs:,.0f}"
        )
        return Refusal(f"{BUSY}: {rates}; retry in {again:.1f} s", again)

    def _purses(self, author: Peer, stands: bool, now: float) -> list[Purse]:
        own = self._authors.get((author, stands)) or self._opened(author, stands, now)
        return [own] if stands else [own, self._newcomers]

    def _opened(self, author: Peer, stands: bool, now: float) -> Purse:
        if len(self._authors) >= MOST_AUTHORS:
            self._make_room(now)
        settings = self._settings
        purse = (
            Purse(settings.standing_sentences, settings.standing_jobs, self.chunk, now)
            if stands
            else Purse(settings.newcomer_sentences, settings.newcomer_jobs, self.chunk, now)
        )
        self._authors[author, stands] = purse
        return purse

    def _make_room(self, now: float) -> None:
        """Forget the authors with full accounts, or one newcomer if there are none.

        A newcomer that is forgotten is still bounded by the limit that all newcomers share.
        """
        idle = [key for key, purse in self._authors.items() if purse.is_full(now)]
        newcomers = (key for key in self._authors if not key[1])
        for key in idle or [next(newcomers, next(iter(self._authors)))]:
            del self._authors[key]
