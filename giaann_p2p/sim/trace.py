"""What happened in a simulation, line by line, for whoever wants to know why."""

from collections import deque

_LAST = 400


class Trace:
    """All lines, or the last ones."""

    def __init__(self, everything: bool = False) -> None:
        self.lines: deque[str] = deque(maxlen=None if everything else _LAST)

    def note(self, now: float, who: str, what: str) -> None:
        """Note something down."""
        self.lines.append(f"{now:9.3f}  {who:<10}  {what}")
