"""How much of what waits for the store is whose, and how full it may be for each who brings more.

One that pushes as fast as it can would else fill all the room there is, and everybody would be
refused alike. So it finds it full at half, as long as others wait beside it; and who has less than
its share waiting still finds room where it is full for the others. Nobody is held up where only one
pushes, or all push alike.
"""

from collections import Counter

from giaann_p2p.node.effort import EACH

ALONE = 1.0
"""How full it may be for one who has about its share, or is alone."""
GREEDY, MODEST = 0.5, 1.25
"""For one who has much more than its share, and for one who has less."""
_MUCH = 1.5
_LITTLE = 0.5


class Shares:
    """Of those who have updates waiting; an update counts by its bytes, as `Effort` counts it."""

    def __init__(self) -> None:
        self._of = Counter[bytes]()
        self._all = 0

    def __repr__(self) -> str:
        return f"<Shares: {len(self._of)} peers, {self._all:,} bytes>"

    def add(self, peer: bytes, nbytes: int) -> None:
        """Note that an update waits."""
        self._of[peer] += EACH + nbytes
        self._all += EACH + nbytes

    def drop(self, peer: bytes, nbytes: int) -> None:
        """Note that one waits no longer."""
        self._of[peer] -= EACH + nbytes
        self._all -= EACH + nbytes
        if not self._of[peer]:
            del self._of[peer]

    def most_for(self, peer: bytes) -> float:
        """Return how full it may be for one more update of a peer."""
        others = len(self._of) - (peer in self._of)
        if not others:
            return ALONE
        share, mine = self._all / (1 + others), self._of[peer]
        if mine > _MUCH * share:
            return GREEDY
        return MODEST if mine < _LITTLE * share else ALONE
