"""A storage peer, as far as it decides: what to hold, to ask, to fetch, to let go, and to say.

It is told what happened and what time it is, and returns actions; `tick` looks at everything anew,
so that nothing depends on one message having come. Its own store it only looks at.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from giaann_p2p.errors import GiaannError, MessageError
from giaann_p2p.store.applied import MOST_BEGUN, Applied
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm import releasing
from giaann_p2p.swarm.actions import (
    Action,
    Announce,
    Apply,
    Drop,
    Hold,
    Leave,
    Reply,
)
from giaann_p2p.swarm.arrivals import Arrivals
from giaann_p2p.swarm.auditing import Auditing
from giaann_p2p.swarm.barring import Named, placed
from giaann_p2p.swarm.bulk import Bulk
from giaann_p2p.swarm.comparing import Comparing, Held
from giaann_p2p.swarm.deeds import Deeds
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.evidence import Evidence, Word
from giaann_p2p.swarm.fetching import Fetching
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.judgement import all_ready, caught_up, covered, may_begin
from giaann_p2p.swarm.limits import of_shard
from giaann_p2p.swarm.messages import Message, Push, Pushed, Refused
from giaann_p2p.swarm.proving import Proving, Spare
from giaann_p2p.swarm.releasing import Releasing
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.replicas import Replicas
from giaann_p2p.swarm.settings import Settings
from giaann_p2p.swarm.shardset import packed, unpacked
from giaann_p2p.swarm.terms import Terms
from giaann_p2p.swarm.weighing import Weights


class Others(releasing.Others, Protocol):
    """What is known of the other peers; see `Surroundings`."""

    def members(self, now: float) -> Mapping[Peer, int]:
        """Return the storage peers that are to hold something, with their capacities."""
        ...

    def named(self, now: float) -> Named:
        """Return who is said, by whom, to hold something wrong of which shards."""
        ...

    def looked_at(self) -> float | None:
        """Return when the directory was looked up first; None if it never was so far."""
        ...

    def ready(self, shard: int, now: float) -> Sequence[Peer]:
        """Return those that are there and say that a shard is ready with them."""
        ...


class Rules(Protocol):
    """What the swarm's manifest says; see `Manifest`."""

    @property
    def shards(self) -> int:
        """How many there are."""
        ...

    @property
    def replicas(self) -> int:
        """How many peers hold each."""
        ...

    @property
    def quorum(self) -> int:
        """How many of them must have taken an update in."""
        ...


class StoragePeer:
    """See the module."""

    def __init__(
        self,
        me: Peer,
        capacity: int,
        rules: Rules,
        settings: Settings,
        others: Others,
        held: Held,
        on_disk: Shards,
        terms: Terms,
        now: float,
        secret: bytes,
    ) -> None:
        """Begin; a `secret` is up to 64 bytes by chance, which nobody else knows."""
        self.me, self.rules, self.settings = me, rules, settings
        self.replicas = Replicas(me, rules.shards, on_disk.tolist())
        self.evidence = Evidence()
        self.leaving = False
        self._capacity, self._others, self._held = capacity, others, held
        self._terms = terms
        self._calls, self._deeds = Desk[Message | None, Action](), Deeds()
        self._weighings = Desk[Weights, Action]()
        bulk = Bulk(settings.call_timeout, self._calls)
        self._arrivals = Arrivals(
            settings,
            self.replicas,
            others,
            held,
            bulk,
            self._deeds,
            terms,
            of_shard(capacity),
            self._hurry,
            now,
        )
        self._proving = Proving(
            settings, self.replicas, others, self._calls, self._weighings, secret
        )
        self.auditing = Auditing(
            settings,
            rules.replicas,
            self.replicas,
            others,
            self.evidence,
            self._calls,
            self._weighings,
            secret,
            now,
        )
        self._fetching = Fetching(
            settings,
            self.replicas,
            others,
            held,
            self.evidence,
            bulk,
            self._deeds,
            terms,
            self._hurry,
            self._arrivals.want,
            self._proving.fetches,
        )
        self._comparing = Comparing(
            settings,
            self.replicas,
            others,
            held,
            self.evidence,
            self._calls,
            self._fetching.after,
        )
        self._releasing = Releasing(settings, self.replicas, others, held, self.evidence, now)
        self._begun = now
        self._members: Mapping[Peer, int] = {}
        self._named: Named = {}
        self._looked_at = -1, False
        self._announced = -1, -1

    def asked(self, ticket: int, question: Push, now: float) -> list[Action]:
        """Take an update in, as far as its shards are held here."""
        try:
            shards = unpacked(question.shards, self.rules.shards)
            here = shards[[self.replicas.holds(shard) for shard in shards.tolist()]]
            if not len(here):
                return [Reply(ticket, Pushed(packed(here, self.rules.shards)))]
            self._check_room_for(question.job, here)
        except MessageError as error:
            return [Reply(ticket, Refused(str(error)))]
        update = self._terms.packed(question, shards, here)
        number = self._deeds.taking(here.tolist(), partial(self._pushed, ticket, here))
        return [Apply(number, [update])]

    def _check_room_for(self, job: bytes, shards: Shards) -> None:
        """Raise MessageError if a shard would begin one job too many: those that it has go on."""
        sets = {id(one): one for one in self._held.sets(shards.tolist()).values()}
        if any(one.jobs >= MOST_BEGUN and not one.of(job) for one in sets.values()):
            raise MessageError(
                f"job: no further one is begun here, for there are chunks of {MOST_BEGUN:,} jobs;"
                " learn many texts as one job, or found another swarm"
            )

    def _pushed(
        self, ticket: int, shards: Shards, error: GiaannError | None, now: float
    ) -> list[Action]:
        if error:
            return [Reply(ticket, Refused(str(error)))]
        return [Reply(ticket, Pushed(packed(shards, self.rules.shards)))]

    def answered(self, number: int, answer: Message | None, now: float) -> list[Action]:
        """Go on with an answer, or with None when there was none in time."""
        heard, shown = self.evidence.heard_so_far, self._proving.shown_so_far
        actions = self._calls.done(number, answer, now) + self._arrivals.due(now)
        actions += self._news()
        if self.evidence.heard_so_far > heard:
            actions += self._decided(self.replicas.all(State.SYNCING).tolist(), now)
        if self._proving.shown_so_far > shown:
            actions += self._let_go(now)
        return actions

    def weighed(self, number: int, weights: Weights, now: float) -> list[Action]:
        """Go on when the shell has weighed some shards."""
        return self._weighings.done(number, weights, now) + self._news()

    def stored(self, number: int, error: GiaannError | None, now: float) -> list[Action]:
        """Go on when the store has done something, or could not."""
        into = self._deeds.into(number)
        actions = self._deeds.done(number, error, now) + self._arrivals.due(now)
        return actions + self._decided(into, now)  # at once, and not only at the next tick

    def restarted(self, peer: Peer) -> None:
        """A peer began anew: what it said before counts no longer."""
        self.evidence.restarted(peer)
        self._comparing.restarted(peer)
        self._proving.restarted(peer)

    def leave(self, now: float) -> list[Action]:
        """Begin to hand over all that is here."""
        self.leaving = True
        return self.tick(now)

    def tick(self, now: float) -> list[Action]:
        """Look at everything anew; to be called every second or so."""
        actions = self._placed(now)
        actions += self._comparing.due(now)
        actions += self._arrivals.due(now)
        actions += self._decided(self.replicas.all(State.SYNCING).tolist(), now)
        actions += self._let_go(now)
        actions += self._releasing.due(now)
        actions += self.auditing.due(now)
        return actions + self._news()

    def _hurry(self, peer: Peer, now: float) -> None:
        self._comparing.hurry(peer, now)

    def _placed(self, now: float) -> list[Action]:
        if self._looked_at == (seen := (self._others.version(now), self.leaving)):
            return []
        self._looked_at = seen
        members = {p: c for p, c in self._others.members(now).items() if p != self.me}
        if not self.leaving:
            members[self.me] = self._capacity
        named = self._others.named(now)
        is_same = members == self._members and not (named or self._named)
        if is_same or not members:
            return []
        self._members, self._named = members, named
        placement = placed(members, self.rules.shards, self.rules.replicas, named)
        begun = self.replicas.place(placement, now)
        return [Hold(begun)] if len(begun) else []

    def _decided(self, shards: Iterable[int], now: float) -> list[Action]:
        """Let some shards be ready that can be; tell everybody if something has changed."""
        syncing = [shard for shard in shards if self.replicas.state(shard) is State.SYNCING]
        if not syncing:  # as nearly always
            return self._news()
        for shard, mine in self._held.sets(syncing).items():
            if self.replicas.wanted(shard) and self._is_ready(shard, mine, now):
                self.replicas.caught_up(shard, now)
        return self._news()

    def _is_ready(self, shard: int, mine: Applied, now: float) -> bool:
        words = self._words(shard, now)
        if caught_up(mine, words):
            return True
        if not self._has_waited(now) or self._is_ready_elsewhere(shard, now):
            return False
        owners = self.replicas.owners(shard)
        others = [peer for peer in owners if peer != self.me]
        return may_begin(mine, words, others, min(self.rules.quorum, len(owners)))

    def _is_ready_elsewhere(self, shard: int, now: float) -> bool:
        return not self.replicas.barred(shard).issuperset(self._others.ready(shard, now))

    def _has_waited(self, now: float) -> bool:
        """Tell whether others had time to be heard of; who never found the directory knows none."""
        looked = self._others.looked_at()
        return looked is not None and now - max(self._begun, looked) >= self.settings.patience

    def _words(self, shard: int, now: float) -> dict[Peer, Word]:
        """Return what others said of a shard lately.

        What was asked before it was held here does not count, for an answer may come when a shard
        has been let go, and held anew: what was learned in between went to others alone.
        """
        since = max(now - self.settings.word_counts, self.replicas.held_since(shard))
        barred = self.replicas.barred(shard)
        return {peer: w for peer, w in self.evidence.on(shard, since) if peer not in barred}

    def _let_go(self, now: float) -> list[Action]:
        dropped, spare = list[int](), dict[int, Spare]()
        unwanted = self._unwanted(now)
        for shard, mine in self._held.sets(unwanted).items() if unwanted else ():
            if self._deeds.awaited_by(shard):
                continue
            if not mine or self._is_held_by_all(shard, mine, now):
                self.replicas.covered(shard, now)
                self.evidence.forget_shard(shard)
                dropped.append(shard)
            elif (one := self._spare(shard, mine, now)) is not None:
                spare[shard] = one
        actions: list[Action] = [Drop(np.array(dropped, np.uint16))] if dropped else []
        actions += self._news() + self._proving.due(spare, now)
        if self.leaving and not len(self.replicas.held):
            actions.append(Leave())
        return actions

    def _is_held_by_all(self, shard: int, mine: Applied, now: float) -> bool:
        """Tell whether all owners say that they have what is here, and have shown it."""
        owners = self.replicas.owners(shard)
        shown = self._proving.shown(shard, mine, owners, now)
        return shown and covered(mine, self._words(shard, now), owners, self.rules.quorum)

    def _spare(self, shard: int, mine: Applied, now: float) -> Spare | None:
        """Return what is to be shown of a shard, if its owners are that far."""
        owners, words = self.replicas.owners(shard), self._words(shard, now)
        if not all_ready(words, owners, self.rules.quorum):
            return None
        return Spare(mine, owners, covered(mine, words, owners, self.rules.quorum))

    def _unwanted(self, now: float) -> list[int]:
        """Return what may be let go as far as time is concerned."""
        if not len(self.replicas.all(State.SYNCING, State.DRAINING)):  # as nearly always
            return []
        syncing = self.replicas.all(State.SYNCING).tolist()
        unwanted = [shard for shard in syncing if not self.replicas.wanted(shard)]
        draining = self.replicas.all(State.DRAINING).tolist()
        lingered = [
            shard
            for shard in draining
            if self.replicas.unchanged_for(shard, now) >= self.settings.linger
        ]
        return sorted(unwanted + lingered)

    def _news(self) -> list[Action]:
        changes = self.replicas.changes, self.auditing.changes
        if self._announced == changes:
            return []
        self._announced = changes
        return [self.announcement()]

    def announcement(self) -> Announce:
        """Return what everybody should know."""
        ready = self.replicas.all(State.READY, State.DRAINING)
        syncing = self.replicas.all(State.SYNCING)
        return Announce(ready, syncing, self.leaving, self.auditing.wrong())
