"""Rate limits on what authors push to an owner: a budget of sentences, and one of new jobs.

Learning is additive, so the author that pushes most has the most influence. An honest compute peer
is bounded by its parser; a peer that only pushes is not. So an owner gives each author a rate:

1. An author of standing has a rate of its own, above what an honest compute peer learns, so a flood
   by others does not slow it.
2. A newcomer has a low rate, and all newcomers together share a limit (by default twice that for
   sentences), however many names they use.
3. The cost of a delta is its strength, in sentences (see `cost_of`). A connection that one chunk
   strengthens again and again costs in proportion: 64 copies of a sentence cost some 960 sentences.
4. The cost is known only once the delta is unpacked, so one chunk's worth is reserved before, and
   the difference is settled after. The settlement may take an account below zero.

A push beyond the budget is refused with the seconds to wait, after which its writer retries.
"""

from collections.abc import Callable, Collection

import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.learn import increment
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import BUSY, MOST_AGAIN, Push, Refusal

SENTENCE = 256
"""Strength of an ordinary sentence, in steps of two neighbours each; English sentences have some
200."""
LEAST = 16
"""Minimum cost of a push, in sentences: an owner of few shards sees little of each chunk's
strength, but still writes to the disk."""
MOST = 4096
"""Maximum cost of a push, in sentences. More would let one push of a stranger shut out all
newcomers for days."""
MOST_AUTHORS = 4096
"""Maximum number of authors with an account."""
_BURST = 16.0
"""Size of a full account of sentences, in seconds of its rate; it holds at least a chunk. A full
account of jobs holds a minute's worth."""
_MINUTE = 60.0
_STEP = increment(1)


def cost_of(delta: Delta) -> float:
    """Return the cost of a delta, in sentences.

    A connection counts in proportion to how often it repeats: above one step, the square of its
    strength in steps. The cost is at least LEAST and at most MOST.
    """
    steps = delta.strength / _STEP
    weight = float(np.sum(steps * np.maximum(steps, 1.0)))
    return min(max(weight / SENTENCE, LEAST), MOST)


class Account:
    """A token bucket. Invariant: the level is at most `most`; it may be below zero."""

    def __init__(self, rate: float, most: float, now: float) -> None:
        self.rate, self.most = rate, most
        self._level, self._at = most, now

    def __repr__(self) -> str:
        return f"<Account: {self._level:,.0f} of {self.most:,.0f}, {self.rate:,.2f} a second>"

    def level(self, now: float) -> float:
        """Refill the account for the elapsed time, and return the amount that can be spent now."""
        if now > self._at:
            self._level = min(self.most, self._level + (now - self._at) * self.rate)
            self._at = now
        return self._level

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until an amount can be spent."""
        return max(0.0, (min(amount, self.most) - self.level(now)) / self.rate)

    def spend(self, amount: float) -> None:
        """Withdraw an amount; a negative one is a refund."""
        self._level = min(self.most, self._level - amount)


class Purse:
    """The accounts for sentences and for new jobs of one author, or of all newcomers."""

    def __init__(self, sentences: float, jobs: float, now: float) -> None:
        """Open full accounts; both rates are per minute."""
        per_second = sentences / _MINUTE
        self.sentences = Account(per_second, max(CHUNK, per_second * _BURST), now)
        self.jobs = Account(jobs / _MINUTE, max(1.0, jobs), now)

    def wait(self, jobs: int, now: float) -> float:
        """Return the seconds until one more chunk, with this many new jobs, is allowed."""
        return max(self.sentences.wait(CHUNK, now), self.jobs.wait(jobs, now) if jobs else 0.0)

    def is_full(self, now: float) -> bool:
        """Return whether both accounts are full, because nothing was spent recently."""
        return all(one.level(now) >= one.most for one in (self.sentences, self.jobs))


class Bill:
    """The charge for one push. The cost is computed on unpacking, perhaps in another thread."""

    def __init__(self, purses: Collection[Purse]) -> None:
        """Reserve the cost of one chunk."""
        self._purses = purses
        self._cost = float(LEAST)
        """The cost in sentences; a rejected delta costs the minimum."""
        self._spend(CHUNK)

    def weighing(self, check: Callable[[Update], None]) -> Callable[[Update], None]:
        """Return a check of a delta that also computes the cost."""

        def weigh(update: Update) -> None:
            check(update)
            self._cost = cost_of(update.delta)

        return weigh

    def settle(self) -> None:
        """Replace the reserved amount by the true cost."""
        self._spend(self._cost - CHUNK)

    def _spend(self, sentences: float) -> None:
        for purse in self._purses:
            purse.sentences.spend(sentences)


class PushBudget:
    """The accounts of all authors at one owner."""

    def __init__(self, settings: Settings, now: float) -> None:
        self.refused = 0
        """Number of pushes refused so far."""
        self._settings = settings
        self._newcomers = Purse(settings.newcomers_sentences, settings.newcomers_jobs, now)
        self._authors: dict[tuple[Peer, bool], Purse] = {}

    def __repr__(self) -> str:
        return f"<PushBudget: {len(self._authors):,} authors, {self.refused:,} pushes refused>"

    def bill(
        self, author: Peer, stands: bool, push: Push, sets: Collection[Applied], now: float
    ) -> Bill | Refusal:
        """Return the bill of a push, or a refusal; `sets` are the sets of its shards held here.

        A chunk that is here already is free: its push is a retry after a lost acknowledgement.
        """
        if sets and all((push.job, push.chunk) in one for one in sets):
            return Bill(())
        purses = self._purses(author, stands, now)
        jobs = int(not (sets and all(one.of(push.job) for one in sets)))
        if wait := max(purse.wait(jobs, now) for purse in purses):
            self.refused += 1
            return self._refusal(stands, wait)
        for purse in purses:
            purse.jobs.spend(jobs)
        return Bill(purses)

    def _refusal(self, stands: bool, wait: float) -> Refusal:
        again = min(wait, MOST_AGAIN)
        mine = self._settings
        rates = (
            f"you may push {mine.standing_sentences:,.0f} sentences and {mine.standing_jobs:,.0f} "
            "new jobs a minute here"
            if stands
            else f"a newcomer may push {mine.newcomer_sentences:,.0f} sentences and "
            f"{mine.newcomer_jobs:,.0f} new jobs a minute here, all newcomers together "
            f"{mine.newcomers_sentences:,.0f} and {mine.newcomers_jobs:,.0f}"
        )
        return Refusal(f"{BUSY}: {rates}; come again in {again:.1f} s", again)

    def _purses(self, author: Peer, stands: bool, now: float) -> list[Purse]:
        own = self._authors.get((author, stands)) or self._opened(author, stands, now)
        return [own] if stands else [own, self._newcomers]

    def _opened(self, author: Peer, stands: bool, now: float) -> Purse:
        if len(self._authors) >= MOST_AUTHORS:
            self._make_room(now)
        settings = self._settings
        purse = (
            Purse(settings.standing_sentences, settings.standing_jobs, now)
            if stands
            else Purse(settings.newcomer_sentences, settings.newcomer_jobs, now)
        )
        self._authors[author, stands] = purse
        return purse

    def _make_room(self, now: float) -> None:
        """Forget idle authors; else one newcomer, which the shared limit still bounds."""
        idle = [key for key, purse in self._authors.items() if purse.is_full(now)]
        newcomers = (key for key in self._authors if not key[1])
        for key in idle or [next(newcomers, next(iter(self._authors)))]:
            del self._authors[key]
