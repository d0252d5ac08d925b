"""How quickly peers answer: whom to ask first, and when to ask a second one besides.

What is older than a minute counts no longer: who was slow, or away, is tried again.
"""

from collections import deque
from math import inf

from giaann_p2p.swarm.identity import Peer

_REMEMBERED = 64
_MOST_PEERS = 4096
"""Beyond these, the one that was not asked for the longest time is forgotten."""
_UNKNOWN = 0.05
"""What a peer that was never asked is taken to need: little, so that it is tried."""
_LATE, _LEAST_LATE, _MOST_LATE = 0.95, 0.01, 0.4
"""However slow a peer was before: when two stand still, a third is asked within a second."""
_COUNTS = 60.0


class Latencies:
    """The last answers of each peer."""

    def __init__(self) -> None:
        self._took: dict[Peer, deque[tuple[float, float]]] = {}  # when, and how long
        self._found: dict[tuple[Peer, float], tuple[float, float]] = {}  # good until, and what

    def took(self, peer: Peer, seconds: float, now: float) -> None:
        """Note how long an answer took; for one that never came, how long it was waited for."""
        known = self._took.pop(peer, None)
        if known is None and len(self._took) == _MOST_PEERS:
            del self._took[next(iter(self._took))]
        self._took[peer] = deque(maxlen=_REMEMBERED) if known is None else known
        self._took[peer].append((now, seconds))
        self._found.clear()

    def usual(self, peer: Peer, now: float) -> float:
        """Return what a peer usually needs: the median."""
        return self._quantile(peer, 0.5, now)

    def late(self, peer: Peer, now: float) -> float:
        """Return after how long an answer is late, and another peer worth asking."""
        return min(max(_LEAST_LATE, self._quantile(peer, _LATE, now)), _MOST_LATE)

    def _quantile(self, peer: Peer, share: float, now: float) -> float:
        """Sort what counts once, for as long as there is no news and none of it is too old."""
        until, found = self._found.get((peer, share), (-inf, _UNKNOWN))
        if now > until:
            counted = [one for one in self._took.get(peer, ()) if now - one[0] <= _COUNTS]
            seconds = sorted(seconds for _, seconds in counted)
            found = seconds[int(share * (len(seconds) - 1))] if seconds else _UNKNOWN
            until = counted[0][0] + _COUNTS if counted else inf
            self._found[peer, share] = until, found
        return found
