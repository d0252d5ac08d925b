"""Requests of one side that wait for their turn to be sent, and how long the next would wait.

Who asks more than the connection carries, or than its peer reads, would fill its own memory, and
get its answers long after it has stopped waiting. So the next one is refused here, at once, where
those before it take too long: by how long lately a byte before them took those that waited.
"""

from giaann_p2p.net.frames import CHUNK

ANYWAY = 1 << 20
"""Bytes that may wait however long they take: little tells little of the pace."""
_TELLS = 1 << 18
"""Bytes before a request from which on its wait tells the pace."""


class Backlog:
    """See the module. A long body counts as its first chunk, for others have turns in between."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[int, int, float]] = {}  # size, bytes before it, since when
        self._nbytes = 0
        self._pace = 0.0  # seconds a byte

    def __repr__(self) -> str:
        return f"<Backlog: {len(self._waiting)} requests, {self._nbytes:,} bytes>"

    @property
    def wait(self) -> float:
        """The seconds that one more would wait, about; 0 while little waits."""
        return self._nbytes * self._pace if self._nbytes >= ANYWAY else 0.0

    def add(self, request: int, size: int, now: float) -> None:
        """Let a request wait."""
        size = min(size, CHUNK)
        self._waiting[request] = size, self._nbytes, now
        self._nbytes += size

    def took_turn(self, request: int, now: float) -> None:
        """Note that a request begins to be sent, if it does so only now."""
        if (found := self._waiting.get(request)) is not None:
            _, before, since = found
            self.drop(request)
            if before >= _TELLS:
                self._pace = (now - since) / before

    def drop(self, request: int) -> None:
        """Let go of a request that is given up, if it still waits."""
        if (found := self._waiting.pop(request, None)) is not None:
            self._nbytes -= found[0]
