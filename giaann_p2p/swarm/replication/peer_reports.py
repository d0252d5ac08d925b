"""What other peers have said of their shards: their state, and which chunks they have taken in.

A word is as old as the question to which it was the answer, so it is never taken to be newer than
it is. Sets of chunks only grow, so an old word still tells what its peer has at least, as long as
the peer has not lost its memory. Who began anew may have: its words are older than all that counts,
and tell only what it had.
"""

from collections.abc import Container, Iterator
from typing import NamedTuple

from giaann_p2p.store.applied import Applied
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.replica import State

_LONG_AGO = float("-inf")


class Word(NamedTuple):
    """What a peer said of one of its shards."""

    state: State
    chunks: Applied
    asked: float


class Evidence:
    """The last word of each peer on each shard."""

    def __init__(self) -> None:
        self._words: dict[int, dict[Peer, Word]] = {}  # by shard and peer
        self.heard_so_far = 0
        """Words."""

    def heard(self, peer: Peer, shard: int, word: Word) -> None:
        """Take a word down, unless a later one is there."""
        words = self._words.get(shard)
        if words is None:
            words = self._words[shard] = {}
        known = words.get(peer)
        if known is None or known.asked <= word.asked:
            words[peer] = word
            self.heard_so_far += 1

    def of(self, peer: Peer, shard: int) -> Word | None:
        """Return a peer's word on a shard."""
        return self._words.get(shard, {}).get(peer)

    def on(self, shard: int, since: float) -> Iterator[tuple[Peer, Word]]:
        """Iterate over the words on a shard that were asked for at this time or later."""
        for peer, word in self._words.get(shard, {}).items():
            if word.asked >= since:
                yield peer, word

    def keep(self, shard: int, peers: Container[Peer]) -> None:
        """Forget what others than these peers said of a shard."""
        words = self._words.get(shard, {})
        for peer in [peer for peer in words if peer not in peers]:
            del words[peer]

    def restarted(self, peer: Peer) -> None:
        """A peer began anew: nothing that it said before was said just now."""
        for words in self._words.values():
            if peer in words:
                words[peer] = words[peer]._replace(asked=_LONG_AGO)

    def forget_shard(self, shard: int) -> None:
        """Forget what was said of a shard."""
        self._words.pop(shard, None)
