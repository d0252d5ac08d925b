"""Shares the store's queue among the peers that push, by a limit on its fullness for each peer.

Without shares, one peer that pushes as fast as it can would fill the whole queue, and all peers
would be refused alike. So while others wait, a heavy pusher is refused at half of the queue's
capacity, and a light pusher only at a quarter beyond the capacity. A single pusher, or pushers of
about equal load, can use the whole queue.
"""

from collections import Counter

from giaann_p2p.node.replication.effort import EACH

ALONE = 1.0
"""Fullness of the queue at which a peer that pushes alone, or has about its share, is refused."""
GREEDY, MODEST = 0.5, 1.25
"""Fullness of the queue at which a heavy pusher is refused (it has more than 1.5 times its share
waiting), and at which a light one is (it has less than half of its share waiting)."""
_MUCH = 1.5
"""Multiple of its share above which a peer pushes heavily."""
_LITTLE = 0.5
"""Multiple of its share below which a peer pushes lightly."""


class Shares:
    """The bytes of updates that each peer has waiting for the store.

    An update counts as its size plus `EACH`. A peer's share is the average over all peers that have
    updates waiting.
    """

    def __init__(self) -> None:
        self._of = Counter[bytes]()
        self._all = 0

    def __repr__(self) -> str:
        return f"<Shares: {len(self._of)} peers, {self._all:,} bytes>"

    def add(self, peer: bytes, nbytes: int) -> None:
        """Count an update that begins to wait for the store."""
        self._of[peer] += EACH + nbytes
        self._all += EACH + nbytes

    def drop(self, peer: bytes, nbytes: int) -> None:
        """Discount an update that no longer waits for the store."""
        self._of[peer] -= EACH + nbytes
        self._all -= EACH + nbytes
        if not self._of[peer]:
            del self._of[peer]

    def most_for(self, peer: bytes) -> float:
        """Return the fullness of the queue at which a peer's next update is refused; 1 is full."""
        others = len(self._of) - (peer in self._of)
        if not others:
            return ALONE
        share, mine = self._all / (1 + others), self._of[peer]
        if mine > _MUCH * share:
            return GREEDY
        return MODEST if mine < _LITTLE * share else ALONE
