"""Updates that compute peers push here: each is checked, charged to its author, and applied.

The rows of an update come with the push, or are fetched from a peer that carries them, which may be
this one (see `carried_deltas`). The seal of the rows is checked in both cases, so the other peer
need not be trusted: it can only fail to send them, and then the pushing peer sends them itself.
"""

from collections import Counter
from collections.abc import Callable, Collection
from functools import partial

import numpy as np
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, GiaannError, MessageError
from giaann_p2p.model.spec import CHUNK
from giaann_p2p.store.applied import MOST_BEGUN, Applied
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.seal import Seal
from giaann_p2p.store.update import Packed
from giaann_p2p.swarm.replication.carried_deltas import CarriedDeltas
from giaann_p2p.swarm.replication.delta_fetch import Lack, deltas_of, shards_of
from giaann_p2p.swarm.replication.push_budget import Bill, PushBudget
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.actions import Action, Apply, Call, Reply
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    NO_SOURCE,
    SOURCE,
    Carried,
    Carry,
    FetchCarried,
    Push,
    Pushed,
    PushFrom,
    Refusal,
)
from giaann_p2p.swarm.wire.shardset import packed, unpacked

_FETCH_WITHIN = 2.0
"""Timeout in seconds of fetching rows of a chunk of the usual size; after it, the pushing peer
sends the rows itself."""
_A_SENTENCE = 0.032
"""Seconds that fetching may take for each further sentence of a chunk: twice what a kilobyte takes
over 0.5 Mbit/s. The pushing peer, which knows how many bytes the rows have, waits for less."""
_MOST_FETCHING = 32
"""Maximum number of updates whose rows are being fetched for one pushing peer."""


class Pushes:
    """The updates that are pushed to one storage peer."""

    def __init__(
        self,
        shared: Shared,
        taking: Callable[[Shards, float], Shards],
        capacity: int,
        now: float,
    ) -> None:
        """Begin; `taking` returns which of the given shards accept updates at the given time.

        `capacity` is the memory that the peer offers for shards, in bytes.
        """
        self._replicas, self._others, self._held = shared.replicas, shared.others, shared.held
        self._checks, self._calls, self._writes = (
            shared.delta_checks,
            shared.calls,
            shared.writes,
        )
        self._taking = taking
        self._fetching = Counter[Peer]()
        self.budget = PushBudget(shared.settings, self._checks.rules().chunk, now)
        self.carried = CarriedDeltas(self._checks, capacity)

    def __repr__(self) -> str:
        return f"<Pushes: {self._fetching.total()} being fetched, {self.budget!r}>"

    def asked(
        self, ticket: int, sender: Peer, question: Push | PushFrom, now: float
    ) -> list[Action]:
        """Apply a pushed update to the shards that accept it here, within its author's budget."""
        try:
            shards = unpacked(question.shards, self._replicas.shards)
            here = self._taking(shards, now)
            if not len(here):
                return [Reply(ticket, self._pushed(here))]
            self._checks.check_sender(sender, _seal_of(question))
            held = self._held.sets(here.tolist())
            sets = {id(one): one for one in held.values()}
            is_known = all((question.job, question.chunk) in one for one in sets.values())
            if is_known and len(held) == len(here):  # the store may have yet to hold some
                return [Reply(ticket, self._pushed(here))]  # again, after a lost answer
            _check_room_for(question.job, sets.values())
            if isinstance(question, PushFrom):
                self._check_source(sender, question.source, now)
        except MessageError as error:
            return [Reply(ticket, Refusal(str(error)))]
        if self.budget.chunk != (chunk := self._checks.rules().chunk):
            self.budget.widen(chunk)
        stands = self._others.may_teach(sender)
        part = len(here) / max(1, len(self._replicas.held))
        bill = self.budget.bill(sender, stands, question, sets.values(), now, part)
        if isinstance(bill, Refusal):
            return [Reply(ticket, bill)]
        if isinstance(question, PushFrom):
            return [self._fetch(ticket, sender, question, here, bill)]
        return self._apply(ticket, [self._checks.packed(question, shards, here)], bill)

    def carry(self, sender: Peer, question: Carry, now: float) -> Carried | Refusal:
        """Keep a delta for its holders to fetch."""
        try:
            self.carried.keep(question, sender, self._others.may_teach(sender), now)
        except (MessageError, DamagedError) as error:
            return Refusal(str(error))
        return Carried()

    def _pushed(self, shards: Shards) -> Pushed:
        return Pushed(packed(shards, self._replicas.shards))

    def _check_source(self, sender: Peer, source: Peer, now: float) -> None:
        """Raise MessageError unless rows may be fetched from `source` for the pushing `sender`."""
        if source != self._replicas.me and source not in self._others.members(now):
            raise MessageError(f"{NO_SOURCE}: this peer knows no storage peer {name_of(source)}")
        if self._fetching[sender] >= _MOST_FETCHING:
            raise MessageError("too many updates of yours are being fetched already")

    def _fetch(
        self, ticket: int, sender: Peer, question: PushFrom, here: Shards, bill: Bill
    ) -> Call:
        lack = Lack(Applied({question.job: BitMap([question.chunk])}), here.tolist())
        self._fetching[sender] += 1
        number = self._calls.number(partial(self._fetched, ticket, sender, lack, bill))
        shards = packed(here, self._replicas.shards)
        fetch = FetchCarried(question.job, question.chunk, shards, sender)
        return Call(number, question.source, fetch, fetch_time(self._checks.rules().chunk))

    def _fetched(
        self,
        ticket: int,
        sender: Peer,
        lack: Lack,
        bill: Bill,
        answer: Message | None,
        now: float,
    ) -> list[Action]:
        """Apply the rows that a courier sent, to the shards that still accept them."""
        self._fetching[sender] -= 1
        if not self._fetching[sender]:
            del self._fetching[sender]
        try:
            came, _ = deltas_of(answer, lack, self._replicas, self._checks)
            if len(shards_of(came)) < sum(len(update.shards) for update in came):
                raise MessageError("the courier sent rows of a shard twice")
            for update in came:
                self._checks.check_sender(sender, update.seal)
        except (MessageError, DamagedError):
            came = []
        taken = [(update, self._taking(update.shards, now)) for update in came]
        updates = [
            update._replace(shards=shards, check=self._checks.check_pushed)
            for update, shards in taken
            if len(shards)
        ]
        if not updates:
            bill.settle()
            return [Reply(ticket, Refusal(f"{SOURCE}: it did not send the rows; push them"))]
        return self._apply(ticket, updates, bill)

    def _apply(self, ticket: int, updates: list[Packed], bill: Bill) -> list[Action]:
        shards = np.array(sorted(shards_of(updates)), np.uint16)
        updates = [update._replace(check=bill.weighing(update.check)) for update in updates]
        then = partial(self._applied, ticket, shards, bill)
        return [Apply(self._writes.taking(shards.tolist(), then), updates, ticket)]

    def _applied(
        self, ticket: int, shards: Shards, bill: Bill, error: GiaannError | None, now: float
    ) -> list[Action]:
        bill.settle()
        return [Reply(ticket, Refusal(str(error)) if error else self._pushed(shards))]


def fetch_time(chunk: int) -> float:
    """Return how many seconds fetching the rows of a chunk with `chunk` sentences may take."""
    return _FETCH_WITHIN + _A_SENTENCE * (chunk - CHUNK)


def _seal_of(question: Push | PushFrom) -> Seal:
    return question.seal if isinstance(question, Push) else Seal(question.vouchers)


def _check_room_for(job: bytes, sets: Collection[Applied]) -> None:
    """Raise MessageError if a shard has no room for a new job; jobs that it has may continue."""
    full = (one for one in sets if one.jobs >= MOST_BEGUN and not one.of(job))
    if any(one.begun >= MOST_BEGUN for one in full):
        raise MessageError(
            f"job: this peer's shards have chunks of {MOST_BEGUN:,} jobs and take no new job;"
            " learn many texts as one job, or found another swarm"
        )
