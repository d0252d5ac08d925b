"""A chunk that is being pushed to its holders: who has it, who lacks it, and where each gets it.

See `writer`, which sends it.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np

from giaann_p2p.backoff import Backoff
from giaann_p2p.store.layout import Shards, among
from giaann_p2p.swarm.members.claims import Mask
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.training.couriers import Couriers
from giaann_p2p.swarm.training.strangers_beside import StrangersBeside
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.shardset import recounted
from giaann_p2p.swarm.wire.voucher import Sealing

_NONE = np.empty(0, np.uint16)
_BACKOFF = Backoff(first=0.5, longest=2.0)
"""Backoff of pushes to a silent peer, in seconds. It stays short because a returning peer may be
the last one that a quorum lacks, and a failed attempt costs little."""

Cut = Callable[[Shards], bytes]
"""A function that returns a parcel with a delta's rows for some shards."""


class PushedChunk:
    """A chunk that is being pushed: which peers have it, and which lack it, for which shards."""

    def __init__(
        self, job: bytes, chunk: int, cut: Cut, seal: Sealing, shards: int, quorum: int
    ) -> None:
        self.job, self.chunk, self.cut, self.seal = job, chunk, cut, seal
        self.acks = np.zeros(shards, np.int64)  # by shard: number of peers that have the chunk
        self.short = shards
        """Number of shards for which fewer than `quorum` peers have the chunk."""
        self._quorum = quorum
        self.taken: dict[Peer, Shards] = {}  # shards for which each peer has the chunk
        self.refused: set[Peer] = set()  # peers that refused some shards, under this placement
        self.placement: Placement | None = None
        self.beside: Mapping[Peer, Shards] = {}
        self.lacking: dict[Peer, Shards] = {}  # shards for which each holder lacks the chunk
        self.asking: dict[Peer, Shards] = {}  # shards for which each peer's answer is awaited
        self.pushing: set[Peer] = set()  # peers to which this peer is sending rows
        self.waiting: set[Peer] = set()  # peers whose rows wait until the line is free
        self.couriers = Couriers()
        self.unable: set[Peer] = set()  # peers that could not fetch rows from a courier
        self.in_turn: list[Peer] = []
        """The holders in the order in which they become couriers; it starts elsewhere for each
        chunk."""
        self.vouchers = b""
        """The encoded vouchers of the chunk; empty until it was first cut."""
        self.density = inf
        """Average number of bytes of a shard's rows, estimated from the rows cut so far."""
        self.backoff: dict[Peer, Backoff] = {}
        self.next: dict[Peer, float] = {}
        self.sent = 0
        """Number of bytes of this chunk that were sent to peers so far, retries included."""
        self._divided: PushedChunk | None = None
        """The chunk that replaced this one when the number of shards doubled; None before that."""

    @property
    def shards(self) -> int:
        """The number of shards in the swarm."""
        return len(self.acks)

    def doubled(self, shards: int, quorum: int) -> "PushedChunk":
        """Return the chunk for its pushes after the shards were divided into `shards` in all.

        Its seal proves only the rows of whole former shards. So the rows of a child are sent and
        sealed together with those of its siblings, which the receiver ignores. A peer that has the
        chunk for a shard has it for the children. Pushes in flight are sent again, and the answers
        to them still count.
        """
        before = self.shards

        def cover(some: Shards) -> Shards:
            return recounted(some, shards, before, whole=False)

        new = PushedChunk(
            self.job,
            self.chunk,
            lambda some: self.cut(cover(some)),
            lambda some: self.seal(cover(some)),
            shards,
            quorum,
        )
        for peer, taken in self.taken.items():
            new.acked(peer, recounted(taken, before, shards))
        new.sent = self.sent
        self._divided = new
        return new

    def acked(self, peer: Peer, shards: Shards) -> None:
        """Record for which shards a peer has the chunk."""
        taken = self.taken.get(peer, _NONE)
        new = shards[~among(shards, taken)]
        self.acks[new] += 1
        self.short -= int(np.count_nonzero(self.acks[new] == self._quorum))
        self.taken[peer] = np.union1d(taken, shards)
        if peer in self.lacking:
            self._lacks(peer, self.lacking[peer])
        if (more := self._divided) is not None:
            more.acked(peer, recounted(shards, self.shards, more.shards))

    def placed(self, placement: Placement, beside: Mapping[Peer, Shards]) -> None:
        """If owners or the peers beside them have changed, recompute what each holder lacks."""
        if placement is not self.placement or beside is not self.beside:
            self.placement, self.beside, self.lacking = placement, beside, {}
            self.refused.clear()
            self.in_turn = _turned(sorted({*placement.peers, *beside}), self.chunk)
            for peer in placement.peers:
                self._lacks(peer, self._held_by(peer))
            for peer in beside.keys() - set(placement.peers):
                self._lacks(peer, beside[peer])

    def _held_by(self, peer: Peer) -> Shards:
        own = self.placement.shards_of(peer) if self.placement else _NONE
        return np.union1d(own, self.beside[peer]) if peer in self.beside else own

    def _lacks(self, peer: Peer, shards: Shards) -> None:
        left = shards[~among(shards, self.taken.get(peer, _NONE))]
        if len(left):
            self.lacking[peer] = left
        else:
            self.lacking.pop(peer, None)

    def ways(
        self, peer: Peer, may_meet: Callable[[Peer], bool]
    ) -> list[tuple[Peer | None, Shards]]:
        """Return the shards that a peer should get now, by source: a courier, or None: this peer.

        `may_meet`: whether the peer may be told to fetch rows from a courier. Shards that are on
        their way to the peer, or to their courier, are left out. Only one message with rows is on
        its way to a peer at a time, because it may be large.
        """
        left = self.lacking[peer]
        if peer in self.asking:
            left = left[~among(left, self.asking[peer])]
        self.waiting.discard(peer)
        ways: list[tuple[Peer | None, Shards]] = []
        if peer not in self.unable:
            carried, left = self.couriers.way(peer, left, may_meet)
            ways += carried
        if len(left) and peer not in self.pushing:
            ways.append((None, left))
        return ways

    def asks(self, peer: Peer, shards: Shards) -> None:
        """Record that a peer is asked to take the chunk for some shards."""
        self.asking[peer] = np.union1d(self.asking.get(peer, _NONE), shards)

    def heard(self, peer: Peer, shards: Shards) -> None:
        """Record that a peer has answered for some shards, or failed to answer in time."""
        left = self.asking.pop(peer)
        if len(left := left[~among(left, shards)]):
            self.asking[peer] = left

    def waits_for_keepers(
        self, others: "PeersView", strangers: StrangersBeside, now: float
    ) -> bool:
        """Return whether any shard still lacks a keeper that has the chunk.

        `PeersView.kept` says which shards need one. In addition, each reachable peer beside the
        owners must have taken or refused the chunk, unless a keeper among these peers has it. Those
        without standing are waited for, too, but not for long.
        """
        if not (self.kept(others) | ~others.kept(now)).all():
            return True
        kept_beside = self.kept(others, self.beside)
        missing = [
            peer
            for peer in self.beside
            if (lacking := self.lacking.get(peer)) is not None
            and peer not in self.refused
            and others.not_suspected(peer, now)
            and not kept_beside[np.intersect1d(self.beside[peer], lacking)].all()
        ]
        is_waited_for = [strangers.is_waited_for(p, now) for p in missing if not others.stands(p)]
        return any(is_waited_for) or len(is_waited_for) < len(missing)

    def kept(self, others: "PeersView", among: Mapping[Peer, Shards] | None = None) -> Mask:
        """Return the shards for which a keeper has the chunk, one flag per shard.

        With `among`, only these peers count, each for its shards. A peer may have become a keeper
        after it took the chunk, so the flags are computed anew each time.
        """
        kept = np.zeros(len(self.acks), np.bool_)
        for peer, shards in self.taken.items():
            if (among is None or peer in among) and others.keeps(peer):
                kept[shards if among is None else np.intersect1d(shards, among[peer])] = True
        return kept

    def failed(self, peer: Peer, now: float, again: float = 0.0) -> None:
        """Schedule a retry at a peer after `again` seconds, or with backoff if `again` is 0."""
        if again:
            self.next[peer] = now + again
        else:
            self.backoff[peer] = self.backoff.get(peer, _BACKOFF).failed(now)
            self.next[peer] = self.backoff[peer].until


def _turned(peers: Sequence[Peer], number: int) -> list[Peer]:
    """Return the peers in order, beginning with a different one for each chunk `number`."""
    first = number % max(len(peers), 1)
    return [*peers[first:], *peers[:first]]
