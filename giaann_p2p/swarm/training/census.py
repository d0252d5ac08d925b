"""Finding out which chunks of a job are committed, from those who have them.

So a job is resumed by whoever has its text: nothing of it need be remembered. Enough owners of each
shard are asked; a chunk counts if so many of each shard's have it. Those are asked with whom the
shard is ready, for who is syncing may lack most; the others, too, where these are not enough.

It also tells who cannot have brought a chunk: what a quorum has taken in for each shard, one at
least has of all the owners that are more than those who may be left out of one.
"""

from collections.abc import Sequence
from functools import partial, reduce
from operator import and_, or_
from typing import NamedTuple, Protocol

import numpy as np
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.actions import Call
from giaann_p2p.swarm.comparing import words_of
from giaann_p2p.swarm.desk import Desk
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.messages import Compare, Message
from giaann_p2p.swarm.replica import State
from giaann_p2p.swarm.replicas import Owned
from giaann_p2p.swarm.shardset import packed

_PAUSE = 1.0


class Others(Protocol):
    """What is known of the storage peers; see `Surroundings`."""

    def placement(self, now: float) -> Owned:
        """Return who should hold which shard; the same object as long as nothing has changed."""
        ...

    def ready(self, shard: int, now: float) -> Sequence[Peer]:
        """Return those that are there and say that a shard is ready with them."""
        ...


class _Owners(NamedTuple):
    """Who should hold a shard."""

    all: Sequence[Peer]
    ready: Sequence[Peer]
    """Those who say that they do."""


class Census:
    """One count of one job."""

    def __init__(
        self, job: bytes, shards: int, quorum: int, others: Others, timeout: float
    ) -> None:
        self._job, self._shards, self._quorum = job, shards, quorum
        self._others, self._timeout = others, timeout
        self._calls = Desk[Message | None, Call]()
        self._asking: set[Peer] = set()
        self._next: dict[Peer, float] = {}
        self._in_vain: set[Peer] = set()
        self._placement: Owned | None = None
        self._owners: dict[int, _Owners] = {}  # by this placement
        self._told: dict[int, dict[Peer, BitMap]] = {shard: {} for shard in range(shards)}

    @property
    def committed(self) -> BitMap | None:
        """The chunks that are committed; None as long as too few have answered."""
        if any(len(told) < self._quorum for told in self._told.values()):
            return None
        return reduce(and_, map(self._enough, self._told.values()))

    def known(self, chunks: BitMap) -> BitMap:
        """Return those of some chunks that may have been committed: who brought them is no liar.

        They are those that any owner of any shard has; all, if of some shard so few have told that
        the others may be enough for a quorum. One shard alone tells nothing: who took a chunk in
        may be none of its owners any longer, and who is now may have been cut off.
        """
        found = BitMap()
        for shard, told in self._told.items():
            owners = self._owners.get(shard)
            if owners is None or len(told) <= len(owners.all) - self._quorum:
                return chunks.copy()
            found |= reduce(or_, told.values(), BitMap())
        return found & chunks

    @property
    def asking(self) -> bool:
        """Whether some have not answered yet: who has not told may be the one who knows of more."""
        return bool(self._asking)

    def _enough(self, told: dict[Peer, BitMap]) -> BitMap:
        """Return the chunks that enough of a shard's owners have."""
        seen = [BitMap() for _ in range(self._quorum)]  # by how many at least
        for chunks in told.values():
            for level in reversed(range(1, self._quorum)):
                seen[level] |= seen[level - 1] & chunks
            seen[0] |= chunks
        return seen[-1]

    def answered(self, number: int, answer: Message | None, now: float) -> list[Call]:
        """Go on with an answer, or with None when there was none in time."""
        return self._calls.done(number, answer, now) + self.tick(now)

    def tick(self, now: float) -> list[Call]:
        """Ask the owners that have not told yet."""
        if self.committed is not None:
            return []
        self._look(now)
        asked: dict[Peer, list[int]] = {}
        for shard, told in self._told.items():
            for peer in self._to_tell(shard) if len(told) < self._quorum else ():
                if peer not in told:
                    asked.setdefault(peer, []).append(shard)
        return [
            self._question(peer, shards)
            for peer, shards in asked.items()
            if peer not in self._asking and now >= self._next.get(peer, now)
        ]

    def _look(self, now: float) -> None:
        """See who has what now."""
        placement = self._others.placement(now)
        if placement is not self._placement:
            self._placement = placement
            for shard in range(self._shards):
                owners, ready = placement.owners(shard), set(self._others.ready(shard, now))
                self._owners[shard] = _Owners(owners, [peer for peer in owners if peer in ready])

    def _to_tell(self, shard: int) -> Sequence[Peer]:
        """Return the owners to be asked: the ready ones, as long as these will do."""
        owners = self._owners[shard]
        ready = [peer for peer in owners.ready if peer not in self._in_vain]
        return ready if len({*self._told[shard], *ready}) >= self._quorum else owners.all

    def _question(self, peer: Peer, shards: list[int]) -> Call:
        self._asking.add(peer)
        asked = packed(np.array(shards, np.uint16), self._shards)
        number = self._calls.number(partial(self._answer, peer, shards))
        return Call(number, peer, Compare(asked, [b""] * len(shards)), self._timeout)

    def _answer(
        self, peer: Peer, shards: list[int], answer: Message | None, now: float
    ) -> list[Call]:
        self._asking.discard(peer)
        self._next[peer] = now + _PAUSE
        try:
            words = words_of(answer, shards, dict.fromkeys(shards, Applied()), now)
        except (MessageError, DamagedError):
            self._in_vain.add(peer)
            return []
        for shard, word in words.items():
            if word.state is State.ABSENT:
                self._in_vain.add(peer)
            else:
                self._told[shard][peer] = word.chunks.of(self._job)
        return []
