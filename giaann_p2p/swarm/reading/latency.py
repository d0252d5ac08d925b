"""How quickly peers answer: whom to ask first, and when to ask a second one besides.

What is older than a minute counts no longer: who was slow, or away, is tried again.
"""

from bisect import bisect_left, insort
from collections import deque

from giaann_p2p.swarm.identity import Peer

_REMEMBERED = 64
_MOST_PEERS = 4096
"""Beyond these, the one that was not asked for the longest time is forgotten."""
_UNKNOWN = 0.05
"""What a peer that was never asked is taken to need: little, so that it is tried."""
_LATE, _LEAST_LATE, _MOST_LATE = 0.95, 0.01, 0.4
"""However slow a peer was before: when two stand still, a third is asked within a second."""
_COUNTS = 60.0


class _Times:
    """The last answers of one peer: when, and how long each took, in both orders."""

    def __init__(self) -> None:
        self._took: deque[tuple[float, float]] = deque()
        self._sorted: list[float] = []

    def add(self, seconds: float, now: float) -> None:
        if len(self._took) == _REMEMBERED:
            self._forget()
        self._took.append((now, seconds))
        insort(self._sorted, seconds)

    def quantile(self, share: float, now: float) -> float:
        while self._took and now - self._took[0][0] > _COUNTS:
            self._forget()
        seconds = self._sorted
        return seconds[int(share * (len(seconds) - 1))] if seconds else _UNKNOWN

    def _forget(self) -> None:
        _, seconds = self._took.popleft()
        del self._sorted[bisect_left(self._sorted, seconds)]


class Latencies:
    """The last answers of each peer."""

    def __init__(self) -> None:
        self._times: dict[Peer, _Times] = {}  # the one asked last is last

    def took(self, peer: Peer, seconds: float, now: float) -> None:
        """Note how long an answer took; for one that never came, how long it was waited for."""
        times = self._times.pop(peer, None)
        if times is None:
            times = _Times()
            if len(self._times) == _MOST_PEERS:
                del self._times[next(iter(self._times))]
        self._times[peer] = times
        times.add(seconds, now)

    def usual(self, peer: Peer, now: float) -> float:
        """Return what a peer usually needs: the median."""
        return self._quantile(peer, 0.5, now)

    def late(self, peer: Peer, now: float) -> float:
        """Return after how long an answer is late, and another peer worth asking."""
        return min(max(_LEAST_LATE, self._quantile(peer, _LATE, now)), _MOST_LATE)

    def _quantile(self, peer: Peer, share: float, now: float) -> float:
        times = self._times.get(peer)
        return _UNKNOWN if times is None else times.quantile(share, now)
