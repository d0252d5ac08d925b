"""Pushes a chunk's delta to the holders of all shards, until enough holders have it on disk.

Every shard gets every chunk, even if the chunk has no rows for it, so a shard's set of chunks alone
shows whether the shard has a whole job. The rows go to one holder, the *courier*, from which the
others are told to fetch theirs (see `couriers`). A holder gets the rows from here if it could not
fetch them, or if the chunk is so small that naming a courier costs as many bytes.

A small push has a fixed timeout; a large one has as much more as its line needs (see `uplink`).

A peer that does not answer is retried with exponential backoff. If the placement changes, the new
owners get the chunk, too. A peer that names a retry time is retried then, without blame (see
`push_budget`). A chunk that arrives twice counts once, so a lost answer does no harm.

The holders of a shard are its owners and the peers *beside* them. A peer beside the owners held the
shard before and keeps it, because it regards the owners as newcomers (see `Standing`). An update is
committed when it has, for each shard,

1. a quorum of holders;
2. a *keeper* among them, that is, a peer with standing and a disk, if the shard has a keeper. If no
   peer with standing is present, but a keeper that had the shard may come back, the writer waits
   for that keeper. So an update survives even if all newcomers vanish at once, and a writer that is
   partitioned off with newcomers commits nothing;
3. a keeper among the peers beside the owners, or else each of those peers that answers and takes
   the update; the writer waits for a peer that divides its shards. A writer that just started
   cannot tell newcomers from other peers, but a peer that keeps a shard beside its owners shows
   that they are newcomers. One that has no standing may be a stranger that only claims the shard,
   so it is waited for a minute at most (see `strangers_beside`).

If all keepers of a shard are full, rule 2 makes training wait until newcomers gain standing or are
vouched for, or until a keeper gets more room: `status` and `train` call the swarm full. This cannot
be avoided. Cold copies take no updates, and an update that only newcomers hold would vanish with
them after it was acknowledged as safe.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.layout import Shards, among
from giaann_p2p.store.seal import Seal
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.training.courier_backoff import CourierBackoff
from giaann_p2p.swarm.training.couriers import Couriers
from giaann_p2p.swarm.training.dividing_peers import DividingPeers
from giaann_p2p.swarm.training.pushed_chunk import Cut, PushedChunk
from giaann_p2p.swarm.training.strangers_beside import StrangersBeside
from giaann_p2p.swarm.training.uplink import Sending, Uplink
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import MOST_CARRIED, carried_size
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import (
    MOST_BYTES,
    Carried,
    Carry,
    Push,
    Pushed,
    PushFrom,
    Refusal,
)
from giaann_p2p.swarm.wire.pending import PendingCalls
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from giaann_p2p.swarm.wire.voucher import Sealing

_MOST_ROWS = MOST_BYTES - (64 << 10)
"""Maximum size in bytes of the rows of a push and of their seal. The rest of a message has at most
9 KiB: the set of shards, and a few names and numbers."""
_CARRIED_WITHIN = 1.0
"""Seconds that a courier of a small chunk has to answer before another one gets the rows, too."""
_FETCHED_WITHIN = 2.5
"""Timeout in seconds of the order to fetch a few rows; after it, this peer sends them itself."""
_CANNOT = 4
"""A peer may not be a courier if more than one in this many holders lately failed to fetch from
it."""
FEW_BYTES = 2048
"""Size of a chunk in bytes below which its rows are sent to each holder from here."""


class Committed(NamedTuple):
    """A chunk is committed: enough holders of each shard have it on disk."""

    job: bytes
    chunk: int
    sent: int = 0
    """Number of bytes sent to all holders together."""


WriteAction = Call | Committed


class Writer:
    """Pushes chunks to the holders of all shards, several chunks at a time.

    `timeout` is the timeout of a small push, in seconds. Chunks of fewer bytes than `few` have no
    couriers.
    """

    def __init__(
        self,
        others: PeersView,
        timeout: float,
        few: int = FEW_BYTES,
    ) -> None:
        self._others, self._timeout, self._few = others, timeout, few
        self._apart, self._uplink = CourierBackoff(), Uplink()
        self._dividing, self._strangers = DividingPeers(others), StrangersBeside()
        self._calls = PendingCalls[Message | None, WriteAction]()
        self._chunks: dict[tuple[bytes, int], PushedChunk] = {}

    def __len__(self) -> int:
        return len(self._chunks)

    @property
    def _shards(self) -> int:
        return self._others.rules.shards

    def push(
        self, job: bytes, chunk: int, cut: Cut, seal: Sealing, now: float, shards: int = 0
    ) -> list[WriteAction]:
        """Begin to push a chunk, unless this has begun already.

        `cut` and `seal` take sets of shards out of `shards`; 0 for the present number of shards.
        """
        self._follow(now)
        if (job, chunk) in self._chunks:
            return []
        quorum = self._others.rules.quorum
        new = PushedChunk(job, chunk, cut, seal, shards or self._shards, quorum)
        if new.shards != self._shards:  # the chunk was learned under an earlier edition
            new = new.doubled(self._shards, quorum)
        self._plan(new, now)
        return self._all_due(new, now)

    def _plan(self, new: PushedChunk, now: float) -> None:
        """Plan how a chunk gets to the holders that lack it: by couriers, if it is large."""
        self._chunks[new.job, new.chunk] = new
        new.placed(self._others.placement(now), self._others.beside(now))
        if self._has_replicas([*new.lacking.values()]):
            everything = np.arange(self._shards, dtype=np.uint16)
            if len(new.cut(everything)) >= self._few:
                new.couriers = Couriers(everything, len(new.lacking))

    def pushes(self, job: bytes, chunk: int) -> bool:
        """Return whether a chunk is being pushed."""
        return (job, chunk) in self._chunks

    def give_up(self, job: bytes, chunk: int) -> bool:
        """Stop pushing a chunk; return whether it was being pushed.

        Peers that already have the chunk keep it.
        """
        return self._chunks.pop((job, chunk), None) is not None

    def awaited(self, job: bytes, now: float) -> Sequence[Peer]:
        """Return the absent keepers, if a chunk of a job has its quorum but no keeper yet.

        The result is empty if no chunk of the job waits for a keeper.
        """
        self._follow(now)
        chunks = [chunk for (its, _), chunk in self._chunks.items() if its == job]
        if any(not chunk.short and not chunk.kept(self._others).all() for chunk in chunks):
            return self._others.awaited(now)
        return []

    def answered(self, number: int, answer: Message | None, now: float) -> list[WriteAction]:
        """Handle the answer to a call; the answer None means a timeout."""
        self._follow(now)
        return self._calls.done(number, answer, now)

    def _follow(self, now: float) -> None:
        """Push to the holders of the present shards, if their number has doubled.

        Couriers have then forgotten their rows (see `CarriedDeltas`), so new ones are chosen.
        """
        for chunk in [one for one in self._chunks.values() if one.shards != self._shards]:
            self._plan(chunk.doubled(self._shards, self._others.rules.quorum), now)

    def tick(self, now: float) -> list[WriteAction]:
        """Return the pushes that are due, and the chunks committed; call this every second."""
        self._follow(now)
        acts: list[WriteAction] = []
        for chunk in list(self._chunks.values()):
            acts += self._committed(chunk, now) or self._all_due(chunk, now)
        return acts

    def cuts(self, now: float) -> list[Shards]:
        """Return the sets of shards for which a chunk that is pushed now will be cut."""
        placement = self._others.placement(now)
        cuts = [placement.shards_of(peer) for peer in placement.peers]
        if self._has_replicas(cuts):
            return [np.arange(self._shards, dtype=np.uint16)]
        return list({shards.tobytes(): shards for shards in cuts}.values())

    def _has_replicas(self, held: Sequence[Shards]) -> bool:
        """Return whether any shard has several holders; `held` are the shards of each holder.

        Otherwise rows would leave this peer only once anyway.
        """
        return sum(map(len, held)) > self._shards

    def _all_due(self, chunk: PushedChunk, now: float) -> list[WriteAction]:
        """Return the messages due to all holders, first to those that are not suspected."""
        chunk.placed(self._others.placement(now), self._others.beside(now))
        sound = partial(self._others.not_suspected, now=now)
        return self._due(chunk, sorted(chunk.in_turn, key=sound, reverse=True), now)

    def _due(self, chunk: PushedChunk, peers: Iterable[Peer], now: float) -> list[WriteAction]:
        calls = self._carry(chunk, now)
        for peer in peers:
            if peer not in chunk.lacking or now < chunk.next.get(peer, now):
                continue
            for courier, shards in chunk.ways(peer, partial(self._may_meet, peer, now)):
                if courier is not None:
                    calls.append(self._push_from(chunk, peer, shards, courier))
                elif self._uplink.is_taken(chunk.density * len(shards), peer, now):
                    chunk.waiting.add(peer)
                else:
                    calls.append(self._push(chunk, peer, shards, now))
        return calls

    def _carry(self, chunk: PushedChunk, now: float) -> list[WriteAction]:
        """Return the call that sends rows to the next courier; empty if none is to be sent now."""
        chunk.couriers.give_up_unless(partial(self._others.not_suspected, now=now))
        may_carry = partial(self._may_carry, chunk, now)
        slow_last = (
            peer
            for slow in (False, True)
            for peer in chunk.in_turn
            if self._uplink.is_slow(peer) is slow
        )
        peer = chunk.couriers.next_of(slow_last, may_carry, now)
        if peer is None:
            return []
        left = chunk.couriers.left
        if self._uplink.is_taken(chunk.density * len(left), peer, now):
            return []
        shards, parcel, seal = self._fitting(chunk, left, is_carried=True)
        sending = self._begin(chunk, peer, len(parcel) + seal.size, now)
        wait = _CARRIED_WITHIN + min(sending.held, self._uplink.more(sending.size, peer))
        chunk.couriers.sent(peer, shards, now + wait)
        number = self._calls.number(partial(self._on_carried, chunk, peer, sending))
        question = Carry(chunk.job, chunk.chunk, packed(shards, chunk.shards), parcel, seal)
        return [Call(number, peer, question, sending.within)]

    def _on_carried(
        self, chunk: PushedChunk, peer: Peer, sending: Sending, answer: Message | None, now: float
    ) -> list[WriteAction]:
        """Handle the answer of a peer that was sent rows to carry."""
        does = isinstance(answer, Carried)
        has_freed = self._uplink.end(sending, now, was_taken=does)
        if does:
            chunk.couriers.accepted(peer)
        else:
            self._apart.failed(peer, peer, now)
            chunk.couriers.declined(peer)
        if isinstance(answer, Carried | Refusal):
            self._others.heard(peer)
        else:
            self._others.suspect(peer, now)
        acts = self._next(chunk, chunk.couriers.waiting, now)
        return acts + self._waiting(now) if has_freed else acts

    def _may_carry(self, chunk: PushedChunk, now: float, peer: Peer) -> bool:
        """Return whether a peer may be a courier: it answers, and few holders failed with it."""
        if not self._others.not_suspected(peer, now) or self._apart.holds(peer, peer, now):
            return False
        cannot = sum(self._apart.holds(peer, holder, now) for holder in chunk.lacking)
        return _CANNOT * cannot <= len(chunk.lacking)

    def _may_meet(self, peer: Peer, now: float, courier: Peer) -> bool:
        """Return whether a peer may be told now to fetch rows from a courier."""
        return not self._apart.holds(courier, peer, now)

    def _push(self, chunk: PushedChunk, peer: Peer, shards: Shards, now: float) -> Call:
        shards, parcel, seal = self._fitting(chunk, shards)
        sending = self._begin(chunk, peer, len(parcel) + seal.size, now)
        chunk.asks(peer, shards)
        chunk.pushing.add(peer)
        number = self._calls.number(partial(self._on_answer, chunk, peer, shards, sending))
        question = Push(chunk.job, chunk.chunk, packed(shards, chunk.shards), parcel, seal)
        return Call(number, peer, question, sending.within)

    def _fitting(
        self,
        chunk: PushedChunk,
        shards: Shards,
        is_carried: bool = False,
    ) -> tuple[Shards, bytes, Seal]:
        """Return as many of the first shards as fit into a message, with their rows and the seal.

        The others are sent after the answer. Rows that are to be carried must also fit into memory.
        """

        def fits() -> bool:
            is_light = not is_carried or carried_size(parcel, seal) <= MOST_CARRIED
            return is_light and len(parcel) + seal.size <= _MOST_ROWS

        parcel, seal = chunk.cut(shards), chunk.seal(shards)
        while len(shards) > 1 and not fits():
            shards = shards[: len(shards) // 2]
            parcel, seal = chunk.cut(shards), chunk.seal(shards)
        chunk.density, chunk.vouchers = len(parcel) / len(shards), seal.words
        return shards, parcel, seal

    def _begin(self, chunk: PushedChunk, peer: Peer, size: int, now: float) -> Sending:
        """Begin to send rows of a chunk to a peer."""
        chunk.sent += size
        is_suspected = not self._others.not_suspected(peer, now)
        return self._uplink.begin(peer, size, self._timeout, now, is_suspected)

    def _push_from(self, chunk: PushedChunk, peer: Peer, shards: Shards, courier: Peer) -> Call:
        told = packed(shards, chunk.shards)
        chunk.sent += len(chunk.vouchers) + len(told) + len(courier)
        chunk.asks(peer, shards)
        number = self._calls.number(partial(self._on_fetched, chunk, peer, shards, courier))
        question = PushFrom(chunk.job, chunk.chunk, told, courier, chunk.vouchers)
        chunk.couriers.asks(courier, peer)
        sharing = max(1, chunk.couriers.asked_of(courier))  # a courier serves many at a time
        more = self._uplink.more_from(chunk.density * len(shards), peer, courier, sharing)
        return Call(number, peer, question, _FETCHED_WITHIN + more)

    def _on_answer(
        self,
        chunk: PushedChunk,
        peer: Peer,
        pushed: Shards,
        sending: Sending,
        answer: Message | None,
        now: float,
    ) -> list[WriteAction]:
        has_freed = self._uplink.end(sending, now, was_taken=isinstance(answer, Pushed))
        chunk.heard(peer, pushed)
        chunk.pushing.discard(peer)
        complete = False
        try:
            if not isinstance(answer, Refusal):
                complete = self._acked(chunk, peer, pushed, answer)
            if not complete:  # perhaps it no longer holds the other shards, or will drop them
                self._refused(chunk, peer, answer, now)
        except MessageError:
            self._others.suspect(peer, now)
        else:
            self._others.heard(peer)
        if not complete:  # after a complete answer, the peer's other shards follow without a pause
            chunk.failed(peer, now, answer.again if isinstance(answer, Refusal) else 0.0)
        acts = self._next(chunk, sorted({peer, *chunk.waiting}), now)
        return acts + self._waiting(now) if has_freed else acts

    def _refused(self, chunk: PushedChunk, peer: Peer, answer: Message | None, now: float) -> None:
        """Record that a peer did not take all that was pushed, unless it divides its shards."""
        if not self._dividing.is_waited_for(peer, answer, now):
            chunk.refused.add(peer)

    def _on_fetched(
        self,
        chunk: PushedChunk,
        peer: Peer,
        pushed: Shards,
        courier: Peer,
        answer: Message | None,
        now: float,
    ) -> list[WriteAction]:
        """Handle the answer of a peer that was told to fetch rows; if it failed, send them."""
        chunk.heard(peer, pushed)
        complete = False
        with suppress(MessageError):  # perhaps its courier's fault
            complete = self._acked(chunk, peer, pushed, answer)
        chunk.couriers.answered(courier, peer, served=complete)
        if complete:
            if courier != peer:
                self._apart.worked(courier, peer)
                self._apart.worked(courier, courier)
        else:
            self._failed(chunk, peer, courier, answer, now)
        return self._next(chunk, [peer, *chunk.couriers.waiting], now)

    def _failed(
        self, chunk: PushedChunk, peer: Peer, courier: Peer, answer: Message | None, now: float
    ) -> None:
        """Decide whose fault it is that a peer did not get its rows from a courier."""
        if isinstance(answer, Refusal) and not (answer.is_of_source or answer.knows_no_source):
            self._refused(chunk, peer, answer, now)
            chunk.failed(peer, now, answer.again)
            return
        if isinstance(answer, Pushed):  # it no longer holds the other shards, or lacks their rows
            chunk.unable.add(peer)
            return
        self._apart.failed(courier, peer, now)
        if isinstance(answer, Refusal) and answer.knows_no_source:
            chunk.unable.add(peer)
            return
        carried = chunk.couriers.has(courier)
        if failed := chunk.couriers.blamed(courier, peer):
            chunk.unable -= failed
            if carried:  # the courier was given up just now
                self._apart.failed(courier, courier, now)
        else:
            chunk.unable.add(peer)

    def _acked(
        self, chunk: PushedChunk, peer: Peer, pushed: Shards, answer: Message | None
    ) -> bool:
        """Record for which shards a peer has the chunk; return whether these are all of `pushed`.

        Raises MessageError if `answer` is not an answer to a push.
        """
        if not isinstance(answer, Pushed):
            raise MessageError("no valid answer to a push")
        if answer.shards == packed(pushed, chunk.shards):  # cheaper than to unpack it
            taken = pushed
        else:
            taken = unpacked(answer.shards, chunk.shards)
        if not among(taken, pushed).all():
            raise MessageError("an answer to a push names shards that were not pushed")
        chunk.acked(peer, taken)
        return len(taken) == len(pushed)

    def _next(self, chunk: PushedChunk, peers: Iterable[Peer], now: float) -> list[WriteAction]:
        """Return what follows from an answer: the commit, or what is now due to some peers."""
        if self._chunks.get((chunk.job, chunk.chunk)) is not chunk:
            return []
        return self._committed(chunk, now) or self._due(chunk, peers, now)

    def _waiting(self, now: float) -> list[WriteAction]:
        """Return what is due to peers that may have waited for another chunk's push."""
        acts: list[WriteAction] = []
        for chunk in self._chunks.values():
            acts += self._due(chunk, [peer for peer in chunk.in_turn if peer in chunk.waiting], now)
        return acts

    def _committed(self, chunk: PushedChunk, now: float) -> list[WriteAction]:
        key = chunk.job, chunk.chunk
        if self._chunks.get(key) is not chunk or chunk.short:
            return []
        if chunk.waits_for_keepers(self._others, self._strangers, now):
            return []
        del self._chunks[key]
        return [Committed(*key, chunk.sent)]
