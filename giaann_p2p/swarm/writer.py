"""Bringing a chunk's delta to the owners of all shards, until enough of each have it on disk.

Every shard gets every chunk, also those for which it has nothing: so a shard's set of chunks alone
tells whether it has all of a job. One message goes to each peer, with all that is for its shards.
Who does not answer is asked again, longer and longer after, and whoever owns a shard by then; a
chunk that arrives twice counts once, so an answer that is lost does no harm.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.store.layout import Shards, among
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import MOST_BYTES, Message, Push, Pushed, Refused
from giaann_p2p.swarm.placement import Placement
from giaann_p2p.swarm.shardset import packed, unpacked
from giaann_p2p.swarm.voucher import Sealing

_NONE = np.empty(0, np.uint16)
_MOST_PARCEL = MOST_BYTES // 2
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 2.0
"""A peer that comes back may be the one that a quorum lacks, and to ask in vain costs little."""

Cut = Callable[[Shards], bytes]
"""Returns the parcel of a delta's rows for some shards."""


class Committed(NamedTuple):
    """Enough owners of each shard have the chunk."""

    job: bytes
    chunk: int
    sent: int = 0
    """Bytes, to all owners together."""


Act = Call | Committed


class Others(Protocol):
    """What is known of the storage peers; see `Surroundings`."""

    def placement(self, now: float) -> Placement:
        """Return who should hold which shard."""
        ...

    def suspect(self, peer: Peer, now: float) -> None:
        """A peer did not answer, or not as it should."""
        ...

    def heard(self, peer: Peer) -> None:
        """A peer answered."""
        ...


class _Chunk:
    """A chunk on its way."""

    def __init__(self, job: bytes, chunk: int, cut: Cut, seal: Sealing, shards: int) -> None:
        self.job, self.chunk, self.cut, self.seal = job, chunk, cut, seal
        self.acks = np.zeros(shards, np.int64)
        self.taken: dict[Peer, Shards] = {}  # the shards for which a peer has it
        self.placement: Placement | None = None
        self.lacking: dict[Peer, Shards] = {}  # by this placement
        self.asking: set[Peer] = set()
        self.pauses: dict[Peer, float] = {}
        self.next: dict[Peer, float] = {}
        self.sent = 0
        """Bytes so far."""

    def acked(self, peer: Peer, shards: Shards) -> None:
        """Note for which shards a peer has the chunk."""
        taken = self.taken.get(peer, _NONE)
        self.acks[shards[~among(shards, taken)]] += 1
        self.taken[peer] = np.union1d(taken, shards)
        if peer in self.lacking:
            self._lacks(peer, self.lacking[peer])

    def placed(self, placement: Placement) -> None:
        """Learn who should have which shard now; looked at anew only when it is another one."""
        if placement is not self.placement:
            self.placement, self.lacking = placement, {}
            for peer in placement.peers:
                self._lacks(peer, placement.shards_of(peer))

    def _lacks(self, peer: Peer, shards: Shards) -> None:
        left = shards[~among(shards, self.taken.get(peer, _NONE))]
        if len(left):
            self.lacking[peer] = left
        else:
            self.lacking.pop(peer, None)

    def failed(self, peer: Peer, now: float) -> None:
        """Ask a peer again, but later."""
        pause = self.pauses.get(peer, _FIRST_PAUSE)
        self.pauses[peer] = min(2 * pause, _LONGEST_PAUSE)
        self.next[peer] = now + pause


class Writer:
    """Pushes chunks; several may be on their way."""

    def __init__(self, shards: int, quorum: int, others: Others, timeout: float) -> None:
        self._shards, self._quorum, self._timeout = shards, quorum, timeout
        self._others = others
        self._calls = Desk[Message | None, Act]()
        self._chunks: dict[tuple[bytes, int], _Chunk] = {}

    def __len__(self) -> int:
        return len(self._chunks)

    def push(self, job: bytes, chunk: int, cut: Cut, seal: Sealing, now: float) -> list[Act]:
        """Begin to bring a chunk to its owners."""
        if (job, chunk) in self._chunks:
            return []
        new = self._chunks[job, chunk] = _Chunk(job, chunk, cut, seal, self._shards)
        return self._due(new, now)

    def give_up(self, job: bytes, chunk: int) -> bool:
        """Bring a chunk no further, if it is on its way; what arrived stays."""
        return self._chunks.pop((job, chunk), None) is not None

    def answered(self, number: int, answer: Message | None, now: float) -> list[Act]:
        """Go on with an answer, or with None when there was none in time."""
        return self._calls.done(number, answer, now)

    def tick(self, now: float) -> list[Act]:
        """Ask those whose turn it is; to be called every second or so."""
        acts: list[Act] = []
        for chunk in self._chunks.values():
            acts += self._due(chunk, now)
        return acts

    def _due(self, chunk: _Chunk, now: float) -> list[Act]:
        chunk.placed(self._others.placement(now))
        return [
            self._call(chunk, peer, shards)
            for peer, shards in chunk.lacking.items()
            if peer not in chunk.asking and now >= chunk.next.get(peer, now)
        ]

    def _call(self, chunk: _Chunk, peer: Peer, shards: Shards) -> Call:
        chunk.asking.add(peer)
        parcel = chunk.cut(shards)
        while len(parcel) > _MOST_PARCEL and len(shards) > 1:
            shards = shards[: len(shards) // 2]  # the others' turn comes behind these
            parcel = chunk.cut(shards)
        seal = chunk.seal(shards)
        chunk.sent += len(parcel) + seal.size
        number = self._calls.number(partial(self._told, chunk, peer, shards))
        question = Push(chunk.job, chunk.chunk, packed(shards, self._shards), parcel, seal)
        return Call(number, peer, question, self._timeout)

    def _told(
        self, chunk: _Chunk, peer: Peer, pushed: Shards, answer: Message | None, now: float
    ) -> list[Act]:
        chunk.asking.discard(peer)
        complete = False
        try:
            if isinstance(answer, Pushed):
                taken = unpacked(answer.shards, self._shards)
                if not among(taken, pushed).all():
                    raise MessageError("shards that were not pushed")
                chunk.acked(peer, taken)
                complete = len(taken) == len(pushed)
            elif not isinstance(answer, Refused):
                raise MessageError("no answer to a push")
        except MessageError:
            self._others.suspect(peer, now)
        else:
            self._others.heard(peer)
        if not complete:  # else what is still to come for it goes at once
            chunk.failed(peer, now)
        key = chunk.job, chunk.chunk
        if self._chunks.get(key) is not chunk or int(chunk.acks.min()) < self._quorum:
            return []
        del self._chunks[key]
        return [Committed(*key, chunk.sent)]
