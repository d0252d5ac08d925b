"""Latencies of peers, which decide which peers to ask first and when to hedge with another one.

Samples older than a minute do not count, so a peer that was slow or away is tried again.
"""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable

from giaann_p2p.swarm.wire.identity import Peer

_REMEMBERED = 64
"""Maximum number of latency samples kept per peer; the oldest one is dropped first."""
_MOST_PEERS = 4096
"""Maximum number of peers with samples; the one whose last sample is oldest is dropped first."""
_UNKNOWN = 0.05
"""Assumed latency of a peer without samples, in seconds; it is low, so that the peer is tried."""
_LATE, _LEAST_LATE, _MOST_LATE = 0.95, 0.01, 0.4
"""Quantile of a peer's latencies after which its answer is late, and the bounds of that delay in
seconds. Because of the upper bound a third peer is asked within a second if two do not answer,
however slow they were before."""
_COUNTS = 60.0
"""Seconds for which a latency sample counts."""


class _Times:
    """The latest latency samples of one peer, both in order of arrival and sorted by duration."""

    def __init__(self) -> None:
        self._took: deque[tuple[float, float]] = deque()
        self._sorted: list[float] = []

    def add(self, seconds: float, now: float) -> None:
        if len(self._took) == _REMEMBERED:
            self._forget()
        self._took.append((now, seconds))
        insort(self._sorted, seconds)

    def quantile(self, share: float, now: float) -> float | None:
        while self._took and now - self._took[0][0] > _COUNTS:
            self._forget()
        seconds = self._sorted
        return seconds[int(share * (len(seconds) - 1))] if seconds else None

    def _forget(self) -> None:
        _, seconds = self._took.popleft()
        del self._sorted[bisect_left(self._sorted, seconds)]


class Latencies:
    """The latest latency samples of each peer."""

    def __init__(self) -> None:
        self._times: dict[Peer, _Times] = {}  # the peer with the oldest last sample first

    def took(self, peer: Peer, seconds: float, now: float) -> None:
        """Add a sample: a call to a peer took this many seconds, with or without an answer."""
        times = self._times.pop(peer, None)
        if times is None:
            times = _Times()
            if len(self._times) == _MOST_PEERS:
                del self._times[next(iter(self._times))]
        self._times[peer] = times
        times.add(seconds, now)

    def usual(self, peer: Peer, now: float) -> float:
        """Return the median latency of a peer in seconds, or a guess if there are no samples."""
        return self.usual_of([peer], now)[peer]

    def usual_of(self, peers: Iterable[Peer], now: float) -> dict[Peer, float]:
        """Return the median latency of each peer in seconds.

        A peer without samples is taken to be as quick as the quickest one, so that it is tried.
        """
        found = {peer: self._quantile(peer, 0.5, now) for peer in peers}
        known = [seconds for seconds in found.values() if seconds is not None]
        new = min([_UNKNOWN, *known])
        return {peer: new if seconds is None else seconds for peer, seconds in found.items()}

    def late(self, peer: Peer, now: float) -> float:
        """Return a peer's hedging delay: the seconds after which another peer is asked as well."""
        late = self._quantile(peer, _LATE, now)
        return min(max(_LEAST_LATE, _UNKNOWN if late is None else late), _MOST_LATE)

    def _quantile(self, peer: Peer, share: float, now: float) -> float | None:
        times = self._times.get(peer)
        return None if times is None else times.quantile(share, now)
