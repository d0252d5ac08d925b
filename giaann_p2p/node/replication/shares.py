"""Shares the store's queue among the peers that push, by a limit of fullness for each.

Without shares, one peer that pushes as fast as it can would fill the whole queue, and all peers
would be refused alike. So while others wait, a heavy pusher is refused at half capacity, and a
light pusher is still accepted at a quarter beyond capacity. A single pusher, or pushers of about
equal load, can use the whole queue.
"""

from collections import Counter

from giaann_p2p.node.replication.effort import EACH

ALONE = 1.0
"""Fullness up to which a peer may push that is alone, or has about its share waiting."""
GREEDY, MODEST = 0.5, 1.25
"""Fullness up to which a peer may push: with more than 1.5 of its share waiting, and with less than
half."""
_MUCH = 1.5
_LITTLE = 0.5


class Shares:
    """Bytes of waiting updates for each peer; an update counts `EACH` more than its size.

    A peer's share is the average over all peers that have updates waiting.
    """

    def __init__(self) -> None:
        self._of = Counter[bytes]()
        self._all = 0

    def __repr__(self) -> str:
        return f"<Shares: {len(self._of)} peers, {self._all:,} bytes>"

    def add(self, peer: bytes, nbytes: int) -> None:
        """Count an update that begins to wait."""
        self._of[peer] += EACH + nbytes
        self._all += EACH + nbytes

    def drop(self, peer: bytes, nbytes: int) -> None:
        """Remove an update that waits no longer."""
        self._of[peer] -= EACH + nbytes
        self._all -= EACH + nbytes
        if not self._of[peer]:
            del self._of[peer]

    def most_for(self, peer: bytes) -> float:
        """Return the fullness from which on a peer's next update is refused; 1 means full."""
        others = len(self._of) - (peer in self._of)
        if not others:
            return ALONE
        share, mine = self._all / (1 + others), self._of[peer]
        if mine > _MUCH * share:
            return GREEDY
        return MODEST if mine < _LITTLE * share else ALONE
