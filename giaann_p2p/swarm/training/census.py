"""Finds out which chunks of a job are committed, by asking the owners of all shards."""

from collections.abc import Sequence
from functools import partial, reduce
from operator import and_, or_
from typing import NamedTuple

import numpy as np
from pyroaring import BitMap

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.replication.replicas import Owned
from giaann_p2p.swarm.replication.set_comparison import words_of
from giaann_p2p.swarm.training.dividing_peers import DividingPeers
from giaann_p2p.swarm.wire.actions import Call
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.message import Message
from giaann_p2p.swarm.wire.messages import Compare
from giaann_p2p.swarm.wire.pending import PendingCalls
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import children, packed

_PAUSE = 1.0
"""Seconds from an owner's answer, or its timeout, to the next question to that owner."""


class _Owners(NamedTuple):
    """The owners of a shard."""

    all: Sequence[Peer]
    ready: Sequence[Peer]
    """The owners that announce the shard as ready."""


class Census:
    """A poll of the owners of all shards: which chunks of one job do they have?

    `timeout` is the timeout of a call, in seconds.
    """

    def __init__(self, job: bytes, others: PeersView, timeout: float) -> None:
        self._job, self._others, self._timeout = job, others, timeout
        self._calls = PendingCalls[Message | None, Call]()
        self._asking: set[Peer] = set()
        self._next: dict[Peer, float] = {}
        self._in_vain: set[Peer] = set()
        self._dividing = DividingPeers(others)
        self._placement: Owned | None = None
        self._owners: dict[int, _Owners] = {}  # by shard, under `_placement`
        self._told: dict[int, dict[Peer, BitMap]] = {n: {} for n in range(others.rules.shards)}

    @property
    def _shards(self) -> int:
        return len(self._told)

    @property
    def _quorum(self) -> int:
        return self._others.rules.quorum

    @property
    def committed(self) -> BitMap | None:
        """The job's committed chunks; None until a quorum of each shard's owners has answered."""
        if any(len(told) < self._quorum for told in self._told.values()):
            return None
        return reduce(and_, map(self._enough, self._told.values()))

    def _follow(self) -> None:
        """Ask about the present shards, if their number has doubled since the last call.

        Owners of a shard own its children (see `Placement`), and have the same chunks of them.
        """
        before, shards = self._shards, self._others.rules.shards
        if before != shards:
            self._told = {shard: dict(self._told[shard % before]) for shard in range(shards)}
            owners, self._placement = self._owners, None
            self._owners = {s: owners[s % before] for s in range(shards) if s % before in owners}

    def known(self, chunks: BitMap) -> BitMap:
        """Return the subset of `chunks` that may be committed.

        A worker that claims to have committed one of the other chunks has lied. The subset has the
        chunks that any owner of any shard has. If the owners of some shard that have not answered
        could form a quorum, all chunks are returned. One shard alone proves nothing, because the
        peers that took a chunk may no longer own the shard, and its present owners may have been
        cut off. The quorum is the manifest's, because a worker that does not know the newest
        edition yet commits by it.
        """
        found = BitMap()
        for shard, told in self._told.items():
            owners = self._owners.get(shard)
            if owners is None or len(told) <= len(owners.all) - self._others.rules.least_quorum:
                return chunks.copy()
            found |= reduce(or_, told.values(), BitMap())
        return found & chunks

    @property
    def asking(self) -> bool:
        """Whether any question is in flight, whose answer may add committed chunks."""
        return bool(self._asking)

    def _enough(self, told: dict[Peer, BitMap]) -> BitMap:
        """Return the chunks that a quorum of a shard's owners has, given each owner's chunks."""
        seen = [BitMap() for _ in range(self._quorum)]  # at i: chunks of i + 1 owners or more
        for chunks in told.values():
            for level in reversed(range(1, self._quorum)):
                seen[level] |= seen[level - 1] & chunks
            seen[0] |= chunks
        return seen[-1]

    def answered(self, number: int, answer: Message | None, now: float) -> list[Call]:
        """Handle the answer to a call; the answer None means a timeout."""
        self._follow()
        return self._calls.done(number, answer, now) + self.tick(now)

    def tick(self, now: float) -> list[Call]:
        """Ask owners that have not answered yet, until each shard has a quorum of answers."""
        self._follow()
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
        """Look up the owners of all shards again if the placement has changed."""
        placement = self._others.placement(now)
        if placement is not self._placement:
            self._placement = placement
            for shard in range(self._shards):
                owners, ready = placement.owners(shard), set(self._others.ready(shard, now))
                self._owners[shard] = _Owners(owners, [peer for peer in owners if peer in ready])

    def _to_tell(self, shard: int) -> Sequence[Peer]:
        """Return which owners of a shard to ask: the ready ones if they make a quorum, else all."""
        owners = self._owners[shard]
        ready = [peer for peer in owners.ready if peer not in self._in_vain]
        return ready if len({*self._told[shard], *ready}) >= self._quorum else owners.all

    def _question(self, peer: Peer, shards: list[int]) -> Call:
        self._asking.add(peer)
        count = self._shards
        asked = packed(np.array(shards, np.uint16), count)
        number = self._calls.number(partial(self._answer, peer, shards, count))
        question = Compare(asked, [b""] * len(shards), job=self._job)
        return Call(number, peer, question, self._timeout)

    def _answer(
        self, peer: Peer, shards: list[int], count: int, answer: Message | None, now: float
    ) -> list[Call]:
        """Handle an owner's answer on some shards; the swarm had `count` when it was asked."""
        self._asking.discard(peer)
        self._next[peer] = now + _PAUSE
        try:
            words = words_of(answer, shards, dict.fromkeys(shards, Applied()), now)
        except (MessageError, DamagedError):
            if not self._dividing.is_waited_for(peer, answer, now):
                self._in_vain.add(peer)
            return []
        for shard, word in words.items():
            if word.state is ReplicaState.ABSENT:
                self._in_vain.add(peer)
                continue
            for child in children([shard], count, self._shards):
                self._told[child][peer] = word.chunks.of(self._job)
        return []
