"""Backpressure for callers: requests queued to be sent, and how long one more would wait.

A caller that asks for more than the connection carries, or than its peer reads, would fill its own
memory and get its answers long after they time out. So a new request is refused locally, at once,
when the queue ahead of it is too slow. The estimate is the queued bytes times the seconds per byte
that the last request measured had to wait.
"""

from giaann_p2p.net.frames import CHUNK

ANYWAY = 1 << 20
"""The number of bytes that may always be queued: smaller backlogs are too noisy to measure."""
_TELLS = 1 << 18
"""The number of bytes queued ahead of a request from which on its wait counts as a measurement of
the pace."""


class Backlog:
    """The requests of one side that wait to be sent, and the pace at which the queue moves.

    A long body counts as its first chunk only, because other bodies have turns between its chunks.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, int, float]] = {}  # size, bytes ahead of it, queued at
        self._nbytes = 0
        self._pace = 0.0  # seconds per byte

    def __repr__(self) -> str:
        return f"<Backlog: {len(self._waiting)} requests, {self._nbytes:,} bytes>"

    @property
    def wait(self) -> float:
        """The estimated wait of one more request in seconds; 0 below ANYWAY bytes."""
        return self._nbytes * self._pace if self._nbytes >= ANYWAY else 0.0

    def add(self, request: int, size: int, now: float) -> None:
        """Queue a request of some bytes."""
        size = min(size, CHUNK)
        self._waiting[request] = size, self._nbytes, now
        self._nbytes += size

    def took_turn(self, request: int, now: float) -> None:
        """Note that a request's first chunk is sent; later chunks have no effect."""
        if (found := self._waiting.get(request)) is not None:
            _, before, since = found
            self.drop(request)
            if before >= _TELLS:
                self._pace = (now - since) / before

    def drop(self, request: int) -> None:
        """Remove a request that was given up, if it is still queued."""
        if (found := self._waiting.pop(request, None)) is not None:
            self._nbytes -= found[0]
