"""Latencies of peers: they decide which peer to ask first, and when to hedge with a second one.

Samples older than a minute do not count, so a peer that was slow or away is tried again.
"""

from bisect import bisect_left, insort
from collections import deque

from giaann_p2p.swarm.wire.identity import Peer

_REMEMBERED = 64
"""Number of samples kept per peer."""
_MOST_PEERS = 4096
"""Number of peers remembered; beyond it, the least recently asked peer is forgotten."""
_UNKNOWN = 0.05
"""Assumed latency of a peer without samples, in seconds: low, so that the peer is tried."""
_LATE, _LEAST_LATE, _MOST_LATE = 0.95, 0.01, 0.4
"""The quantile after which an answer is late, and its bounds in seconds. The upper bound ensures
that a third peer is asked within a second when two do not answer, however slow they were before."""
_COUNTS = 60.0
"""Seconds for which a sample counts."""


class _Times:
    """The latest samples of one peer, in order of arrival (with times) and sorted by duration."""

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
    """The latest samples of each peer."""

    def __init__(self) -> None:
        self._times: dict[Peer, _Times] = {}  # least recently asked first

    def took(self, peer: Peer, seconds: float, now: float) -> None:
        """Note for how many seconds a call waited, whether its answer came or not."""
        times = self._times.pop(peer, None)
        if times is None:
            times = _Times()
            if len(self._times) == _MOST_PEERS:
                del self._times[next(iter(self._times))]
        self._times[peer] = times
        times.add(seconds, now)

    def usual(self, peer: Peer, now: float) -> float:
        """Return the median latency of a peer, in seconds."""
        return self._quantile(peer, 0.5, now)

    def late(self, peer: Peer, now: float) -> float:
        """Return the hedging delay, in seconds: after it a second peer is asked as well."""
        return min(max(_LEAST_LATE, self._quantile(peer, _LATE, now)), _MOST_LATE)

    def _quantile(self, peer: Peer, share: float, now: float) -> float:
        times = self._times.get(peer)
        return _UNKNOWN if times is None else times.quantile(share, now)
