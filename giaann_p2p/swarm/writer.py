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
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Message, Push, Pushed, Refused
from giaann_p2p.swarm.replicas import Owned
from giaann_p2p.swarm.shardset import packed, unpacked

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0

Cut = Callable[[Shards], bytes]
"""Returns the parcel of a delta's rows for some shards."""


class Committed(NamedTuple):
    """Enough owners of each shard have the chunk."""

    job: bytes
    chunk: int


Act = Call | Committed


class Others(Protocol):
    """What is known of the storage peers; see `Surroundings`."""

    def placement(self, now: float) -> Owned:
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

    def __init__(self, job: bytes, chunk: int, cut: Cut, shards: int) -> None:
        self.job, self.chunk, self.cut = job, chunk, cut
        self.acks = np.zeros(shards, np.int64)
        self.taken: dict[Peer, set[int]] = {}  # the shards for which a peer has it
        self.asking: set[Peer] = set()
        self.pauses: dict[Peer, float] = {}
        self.next: dict[Peer, float] = {}
        self.sent = 0
        """Bytes so far."""

    def acked(self, peer: Peer, shards: Shards) -> None:
        """Note for which shards a peer has the chunk."""
        taken = self.taken.setdefault(peer, set())
        new = [shard for shard in shards.tolist() if shard not in taken]
        taken.update(new)
        self.acks[new] += 1

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

    def push(self, job: bytes, chunk: int, cut: Cut, now: float) -> list[Act]:
        """Begin to bring a chunk to its owners."""
        if (job, chunk) in self._chunks:
            return []
        self._chunks[job, chunk] = _Chunk(job, chunk, cut, self._shards)
        return self.tick(now)

    def give_up(self, job: bytes, chunk: int) -> None:
        """Bring a chunk no further; what arrived stays."""
        self._chunks.pop((job, chunk), None)

    def answered(self, number: int, answer: Message | None, now: float) -> list[Act]:
        """Go on with an answer, or with None when there was none in time."""
        self._calls.done(number, answer, now)
        return self.tick(now)

    def tick(self, now: float) -> list[Act]:
        """Ask those whose turn it is, and tell what is done."""
        acts: list[Act] = []
        for chunk in list(self._chunks.values()):
            if int(chunk.acks.min()) >= self._quorum:
                del self._chunks[chunk.job, chunk.chunk]
                acts.append(Committed(chunk.job, chunk.chunk))
            else:
                acts += self._due(chunk, now)
        return acts

    def _due(self, chunk: _Chunk, now: float) -> list[Act]:
        placement = self._others.placement(now)
        lacking: dict[Peer, list[int]] = {}
        for shard in range(self._shards):
            for peer in placement.owners(shard):
                if shard not in chunk.taken.get(peer, ()):
                    lacking.setdefault(peer, []).append(shard)
        return [
            self._call(chunk, peer, np.array(shards, np.uint16))
            for peer, shards in lacking.items()
            if peer not in chunk.asking and now >= chunk.next.get(peer, now)
        ]

    def _call(self, chunk: _Chunk, peer: Peer, shards: Shards) -> Call:
        chunk.asking.add(peer)
        parcel = chunk.cut(shards)
        chunk.sent += len(parcel)
        number = self._calls.number(partial(self._told, chunk, peer))
        question = Push(chunk.job, chunk.chunk, packed(shards, self._shards), parcel)
        return Call(number, peer, question, self._timeout)

    def _told(self, chunk: _Chunk, peer: Peer, answer: Message | None, now: float) -> list[Act]:
        chunk.asking.discard(peer)
        chunk.failed(peer, now)  # for the shards that it does not hold, too
        try:
            if isinstance(answer, Pushed):
                chunk.acked(peer, unpacked(answer.shards, self._shards))
            elif not isinstance(answer, Refused):
                raise MessageError("no answer to a push")
        except MessageError:
            self._others.suspect(peer, now)
        else:
            self._others.heard(peer)
        return []
