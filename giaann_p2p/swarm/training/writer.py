"""Pushes a chunk's delta to the holders of all shards, until enough holders have it on disk.

Every shard gets every chunk, even if the chunk has no rows for it, so a shard's set of chunks alone
shows whether the shard has a whole job. Each peer gets one message with the rows for all its
shards. A peer that does not answer is retried with exponential backoff. If the placement changes,
the new owners get the chunk, too. A peer that names a retry time is retried then, without blame
(see `push_budget`). A chunk that arrives twice counts once, so a lost answer does no harm.

The holders of a shard are its owners and the peers *beside* them. A peer beside the owners held the
shard before and keeps it, because it regards the owners as newcomers (see `Standing`). An update is
committed when it has, for each shard,

1. a quorum of holders;
2. a *keeper* among them, that is, a peer with standing and a disk, if the shard has a keeper. If no
   peer with standing is present, but a keeper that had the shard may come back, the writer waits
   for that keeper. So an update survives even if all newcomers vanish at once, and a writer that is
   partitioned off with newcomers commits nothing;
3. a keeper among the peers beside the owners, or else each of those peers that answers and takes
   the update. A writer that just started cannot tell newcomers from other peers, but a peer that
   keeps a shard beside its owners shows that they are newcomers.

If all keepers of a shard are full, rule 2 makes training wait until newcomers gain standing or are
vouched for, or until a keeper gets more room: `status` and `train` call the swarm full. This cannot
be avoided. Cold copies take no updates, and an update that only newcomers hold would vanish with
them after it was acknowledged as safe.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import MessageError
from giaann_p2p.store.layout import Shards, among
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import MOST_BYTES, Message, Push, Pushed, Refusal
from giaann_p2p.swarm.wire.pending import PendingCalls
from giaann_p2p.swarm.wire.shardset import packed, unpacked
from giaann_p2p.swarm.wire.voucher import Sealing

_NONE = np.empty(0, np.uint16)
_MOST_PARCEL = MOST_BYTES // 2
_BACKOFF = Backoff(first=0.5, longest=2.0)
"""Backoff of pushes to a silent peer, in seconds. It stays short because a returning peer may be
the last one that a quorum lacks, and an attempt in vain costs little."""

Cut = Callable[[Shards], bytes]
"""A function that returns a parcel with a delta's rows for some shards."""


class Committed(NamedTuple):
    """A chunk is committed: enough holders of each shard have it on disk."""

    job: bytes
    chunk: int
    sent: int = 0
    """Number of bytes sent to all holders together."""


WriteAction = Call | Committed


class _Chunk:
    """A chunk that is being pushed: which peers have it, and which lack it, for which shards."""

    def __init__(self, job: bytes, chunk: int, cut: Cut, seal: Sealing, shards: int) -> None:
        self.job, self.chunk, self.cut, self.seal = job, chunk, cut, seal
        self.acks = np.zeros(shards, np.int64)  # by shard: number of peers that have the chunk
        self.taken: dict[Peer, Shards] = {}  # shards for which each peer has the chunk
        self.kept = np.zeros(shards, np.bool_)  # by shard: whether a keeper has the chunk
        self.kept_beside = np.zeros(shards, np.bool_)  # by shard: same, a keeper beside the owners
        self.refused: set[Peer] = set()  # peers that refused all or a part, under this placement
        self.placement: Placement | None = None
        self.beside: Mapping[Peer, Shards] = {}
        self.lacking: dict[Peer, Shards] = {}  # shards for which each present holder lacks it
        self.asking: set[Peer] = set()
        self.backoff: dict[Peer, Backoff] = {}
        self.next: dict[Peer, float] = {}
        self.sent = 0
        """Number of bytes of this chunk that were sent to peers so far, retries included."""

    def acked(self, peer: Peer, shards: Shards, keeps: bool) -> None:
        """Record for which shards a peer has the chunk; `keeps` means that it is a keeper."""
        self.kept[shards] |= keeps
        if peer in self.beside:
            self.kept_beside[np.intersect1d(shards, self.beside[peer])] |= keeps
        taken = self.taken.get(peer, _NONE)
        self.acks[shards[~among(shards, taken)]] += 1
        self.taken[peer] = np.union1d(taken, shards)
        if peer in self.lacking:
            self._lacks(peer, self.lacking[peer])

    def placed(self, placement: Placement, beside: Mapping[Peer, Shards]) -> None:
        """If owners or the peers beside them have changed, recompute what each holder lacks."""
        if placement is not self.placement or beside is not self.beside:
            self.placement, self.beside, self.lacking = placement, beside, {}
            self.refused.clear()
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

    def waits_for_keepers(self, others: "PeersView", now: float) -> bool:
        """Return whether any shard still lacks a keeper that has the chunk.

        `PeersView.kept` says which shards need one. In addition, each reachable peer beside the
        owners must have taken or refused the chunk, unless a keeper among these peers has it.
        """
        if not (self.kept | ~others.kept(now)).all():
            return True
        return any(
            not self.kept_beside[np.intersect1d(self.beside[peer], lacking)].all()
            for peer in self.beside
            if (lacking := self.lacking.get(peer)) is not None
            and peer not in self.refused
            and others.not_suspected(peer, now)
        )

    def failed(self, peer: Peer, now: float, again: float = 0.0) -> None:
        """Schedule a retry at a peer after `again` seconds, or with backoff if `again` is 0."""
        if again:
            self.next[peer] = now + again
        else:
            self.backoff[peer] = self.backoff.get(peer, _BACKOFF).failed(now)
            self.next[peer] = self.backoff[peer].until


class Writer:
    """Pushes chunks to the holders of all shards, several chunks at a time.

    `timeout` is that of one push, in seconds.
    """

    def __init__(self, shards: int, quorum: int, others: PeersView, timeout: float) -> None:
        self._shards, self._quorum, self._timeout = shards, quorum, timeout
        self._others = others
        self._calls = PendingCalls[Message | None, WriteAction]()
        self._chunks: dict[tuple[bytes, int], _Chunk] = {}

    def __len__(self) -> int:
        return len(self._chunks)

    def push(
        self, job: bytes, chunk: int, cut: Cut, seal: Sealing, now: float
    ) -> list[WriteAction]:
        """Begin to push a chunk, unless this has begun already."""
        if (job, chunk) in self._chunks:
            return []
        new = self._chunks[job, chunk] = _Chunk(job, chunk, cut, seal, self._shards)
        return self._due(new, now)

    def give_up(self, job: bytes, chunk: int) -> bool:
        """Stop pushing a chunk; return whether it was being pushed.

        Peers that already have the chunk keep it.
        """
        return self._chunks.pop((job, chunk), None) is not None

    def awaited(self, job: bytes, now: float) -> Sequence[Peer]:
        """Return the absent keepers, if a chunk of a job has its quorum but no keeper yet.

        The result is empty if no chunk of the job waits for a keeper.
        """
        chunks = [chunk for (its, _), chunk in self._chunks.items() if its == job]
        if any(self._has_quorum(chunk) and not chunk.kept.all() for chunk in chunks):
            return self._others.awaited(now)
        return []

    def answered(self, number: int, answer: Message | None, now: float) -> list[WriteAction]:
        """Handle the answer to a call; the answer None means a timeout."""
        return self._calls.done(number, answer, now)

    def tick(self, now: float) -> list[WriteAction]:
        """Return the pushes that are due, and the chunks committed; call this every second."""
        acts: list[WriteAction] = []
        for chunk in list(self._chunks.values()):
            acts += self._committed(chunk, now) or self._due(chunk, now)
        return acts

    def _due(self, chunk: _Chunk, now: float) -> list[WriteAction]:
        chunk.placed(self._others.placement(now), self._others.beside(now))
        return [
            self._call(chunk, peer, shards)
            for peer, shards in chunk.lacking.items()
            if peer not in chunk.asking and now >= chunk.next.get(peer, now)
        ]

    def _call(self, chunk: _Chunk, peer: Peer, shards: Shards) -> Call:
        chunk.asking.add(peer)
        parcel = chunk.cut(shards)
        while len(parcel) > _MOST_PARCEL and len(shards) > 1:
            shards = shards[: len(shards) // 2]  # the others are pushed after the answer
            parcel = chunk.cut(shards)
        seal = chunk.seal(shards)
        chunk.sent += len(parcel) + seal.size
        number = self._calls.number(partial(self._on_answer, chunk, peer, shards))
        question = Push(chunk.job, chunk.chunk, packed(shards, self._shards), parcel, seal)
        return Call(number, peer, question, self._timeout)

    def _on_answer(
        self, chunk: _Chunk, peer: Peer, pushed: Shards, answer: Message | None, now: float
    ) -> list[WriteAction]:
        chunk.asking.discard(peer)
        complete = False
        try:
            if isinstance(answer, Pushed):
                taken = unpacked(answer.shards, self._shards)
                if not among(taken, pushed).all():
                    raise MessageError("shards that were not pushed")
                chunk.acked(peer, taken, self._others.keeps(peer))
                complete = len(taken) == len(pushed)
                if not complete:  # the peer no longer holds the rest, or is about to drop it
                    chunk.refused.add(peer)
            elif isinstance(answer, Refusal):
                chunk.refused.add(peer)
            else:
                raise MessageError("no answer to a push")
        except MessageError:
            self._others.suspect(peer, now)
        else:
            self._others.heard(peer)
        if not complete:  # after a complete answer, the peer's other shards follow without a pause
            chunk.failed(peer, now, answer.again if isinstance(answer, Refusal) else 0.0)
        return self._committed(chunk, now)

    def _committed(self, chunk: _Chunk, now: float) -> list[WriteAction]:
        key = chunk.job, chunk.chunk
        if self._chunks.get(key) is not chunk or not self._has_quorum(chunk):
            return []
        if chunk.waits_for_keepers(self._others, now):
            return []
        del self._chunks[key]
        return [Committed(*key, chunk.sent)]

    def _has_quorum(self, chunk: _Chunk) -> bool:
        return int(chunk.acks.min()) >= self._quorum
