"""Other peers' reports on their replicas: the state of each, and the chunks that it has applied.

A report carries the time of the question that it answers, so it never counts as newer than it is.
Sets of chunks only grow, so the chunks in an old report are still there, unless its peer has lost
data, as it may at a restart. After a restart, a peer's earlier reports no longer count as recent,
and only show what the peer once had.
"""

from collections.abc import Container, Iterator
from typing import NamedTuple

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.replica import ReplicaState
from giaann_p2p.swarm.wire.shardset import children

_LONG_AGO = float("-inf")


class PeerReport(NamedTuple):
    """A peer's report on its replica of one shard."""

    state: ReplicaState
    chunks: Applied
    """The chunks that the replica has applied."""
    asked: float
    """Time at which the question was sent that the report answers."""


class PeerReports:
    """The latest report of each peer on each shard."""

    def __init__(self) -> None:
        self._words: dict[int, dict[Peer, PeerReport]] = {}  # by shard and by peer
        self.heard_so_far = 0
        """Number of reports recorded so far."""

    def doubled(self, before: int, shards: int) -> "PeerReports":
        """Return the reports after a division of `before` shards into `shards`.

        A peer's report on a shard holds for each of the shard's children.
        """
        new = PeerReports()
        new.heard_so_far = self.heard_so_far
        for shard, words in self._words.items():
            for child in children([shard], before, shards):
                new._words[child] = dict(words)
        return new

    def heard(self, peer: Peer, shard: int, word: PeerReport) -> None:
        """Record a peer's report on a shard, unless a later one is known."""
        words = self._words.get(shard)
        if words is None:
            words = self._words[shard] = {}
        known = words.get(peer)
        if known is None or known.asked <= word.asked:
            words[peer] = word
            self.heard_so_far += 1

    def of(self, peer: Peer, shard: int) -> PeerReport | None:
        """Return a peer's latest report on a shard, or None if it never reported."""
        return self._words.get(shard, {}).get(peer)

    def by(self, peer: Peer) -> Iterator[PeerReport]:
        """Yield a peer's latest report on each shard on which it ever reported."""
        return (words[peer] for words in self._words.values() if peer in words)

    def on(self, shard: int, since: float) -> Iterator[tuple[Peer, PeerReport]]:
        """Yield each peer's report on a shard, if its question was sent at `since` or later."""
        for peer, word in self._words.get(shard, {}).items():
            if word.asked >= since:
                yield peer, word

    def keep(self, shard: int, peers: Container[Peer]) -> None:
        """Forget the reports on a shard, except those of the given peers."""
        words = self._words.get(shard, {})
        for peer in [peer for peer in words if peer not in peers]:
            del words[peer]

    def restarted(self, peer: Peer) -> None:
        """Handle a peer's restart: its earlier reports no longer count as recent."""
        for words in self._words.values():
            if peer in words:
                words[peer] = words[peer]._replace(asked=_LONG_AGO)

    def forget_shard(self, shard: int) -> None:
        """Forget all reports on a shard."""
        self._words.pop(shard, None)
