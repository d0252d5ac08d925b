"""What is on its way: it arrives in order, each piece a while after it was sent. Knows no clock."""

from collections import deque

END, LOST = b"", None
"""The sender will send no more; the connection is gone, both ways."""


class Line:
    """One way of a connection. `delay` in the unit of whatever tells the time."""

    def __init__(self, delay: float) -> None:
        self.size = 0
        """Bytes that are on their way."""
        self._delay = delay
        self._flying: deque[tuple[float, bytes | None]] = deque()

    def __repr__(self) -> str:
        return f"<Line: {self.size:,} bytes on their way>"

    def send(self, piece: bytes | None, now: float) -> None:
        """Take bytes, END or LOST."""
        self._flying.append((now + self._delay, piece))
        self.size += len(piece or b"")

    @property
    def next(self) -> float | None:
        """When something arrives; None if nothing is on its way."""
        return self._flying[0][0] if self._flying else None

    def arrived(self, now: float) -> list[bytes | None]:
        """Return what has arrived since this was last asked."""
        found = []
        while self._flying and self._flying[0][0] <= now:
            piece = self._flying.popleft()[1]
            self.size -= len(piece or b"")
            found.append(piece)
        return found
