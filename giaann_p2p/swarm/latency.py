"""How quickly peers answer: whom to ask first, and when to ask a second one besides."""

from collections import deque

from giaann_p2p.swarm.identity import Peer

_REMEMBERED = 64
_MOST_PEERS = 4096
"""Beyond these, the one that was not asked for the longest time is forgotten."""
_UNKNOWN = 0.05
"""What a peer that was never asked is taken to need: little, so that it is tried."""
_LATE, _LEAST_LATE = 0.95, 0.01


class Latencies:
    """The last answers of each peer."""

    def __init__(self) -> None:
        self._seconds: dict[Peer, deque[float]] = {}

    def took(self, peer: Peer, seconds: float) -> None:
        """Note how long an answer took; for one that never came, how long it was waited for."""
        known = self._seconds.pop(peer, None)
        if known is None and len(self._seconds) == _MOST_PEERS:
            del self._seconds[next(iter(self._seconds))]
        self._seconds[peer] = deque(maxlen=_REMEMBERED) if known is None else known
        self._seconds[peer].append(seconds)

    def usual(self, peer: Peer) -> float:
        """Return what a peer usually needs: the median."""
        return self._quantile(peer, 0.5)

    def late(self, peer: Peer) -> float:
        """Return after how long an answer is late, and another peer worth asking."""
        return max(_LEAST_LATE, self._quantile(peer, _LATE))

    def _quantile(self, peer: Peer, share: float) -> float:
        seconds = sorted(self._seconds.get(peer, ()))
        return seconds[int(share * (len(seconds) - 1))] if seconds else _UNKNOWN
