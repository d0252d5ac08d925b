"""What happened in a simulation, line by line, for whoever wants to know why."""

from collections import deque
from typing import NamedTuple

_LAST = 400


class Line(NamedTuple):
    """What somebody said, and when."""

    now: float
    who: str
    what: str

    def __str__(self) -> str:
        return f"{self.now:9.3f}  {self.who:<10}  {self.what}"


class Trace:
    """All lines, or the last ones."""

    def __init__(self, everything: bool = False) -> None:
        self.told: deque[Line] = deque(maxlen=None if everything else _LAST)

    @property
    def lines(self) -> list[str]:
        """All that is kept, as text."""
        return list(map(str, self.told))

    def note(self, now: float, who: str, what: str) -> None:
        """Note something down."""
        self.told.append(Line(now, who, what))
