"""Backpressure for callers: which requests wait to be sent, and how long one more would wait.

A caller that asks for more than the connection carries, or than the peer reads, would fill its own
memory and get its answers long after they timed out. So a new request is refused locally and at
once if its estimated wait is too long. The estimate is the number of queued bytes times the pace,
in seconds per byte, of the last request that was measured.
"""

from giaann_p2p.net.frames import CHUNK

ANYWAY = 1 << 20
"""The number of bytes that may always be queued: smaller backlogs are too noisy to measure."""
_TELLS = 1 << 18
"""The minimum number of bytes queued ahead of a request whose wait is used to measure the pace."""


class Backlog:
    """The requests of one side that wait to be sent, and the pace at which they are sent.

    A long body counts as its first chunk only, because other bodies have turns between its chunks.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, int, float]] = {}  # size, bytes ahead, since when
        self._nbytes = 0
        self._pace = 0.0  # seconds per byte

    def __repr__(self) -> str:
        return f"<Backlog: {len(self._waiting)} requests, {self._nbytes:,} bytes>"

    @property
    def wait(self) -> float:
        """The estimated seconds that one more request would wait; 0 below ANYWAY queued bytes."""
        return self._nbytes * self._pace if self._nbytes >= ANYWAY else 0.0

    def add(self, request: int, size: int, now: float) -> None:
        """Add a request of `size` bytes to the queue at time `now`."""
        size = min(size, CHUNK)
        self._waiting[request] = size, self._nbytes, now
        self._nbytes += size

    def took_turn(self, request: int, now: float) -> None:
        """Note that a request's first chunk was sent; calls for later chunks have no effect."""
        if (found := self._waiting.get(request)) is not None:
            _, before, since = found
            self.drop(request)
            if before >= _TELLS:
                self._pace = (now - since) / before

    def drop(self, request: int) -> None:
        """Remove a request from the queue if it is still there."""
        if (found := self._waiting.pop(request, None)) is not None:
            self._nbytes -= found[0]
