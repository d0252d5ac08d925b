"""The trace of a simulation: a log of its events, for debugging."""

from collections import deque
from typing import NamedTuple

_LAST = 400


class Line(NamedTuple):
    """One event: its virtual time, its node and a text."""

    now: float
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.now:9.3f}  {self.who:<10}  {self.what}"


class Trace:
    """The log lines of one history: all of them, or the last 400."""

    def __init__(self, everything: bool = False) -> None:
        self.told: deque[Line] = deque(maxlen=None if everything else _LAST)

    @property
    def lines(self) -> list[str]:
        """All lines that are kept, as text."""
        return list(map(str, self.told))

    def note(self, now: float, who: str, what: str) -> None:
        """Add a line to the trace."""
        self.told.append(Line(now, who, what))
