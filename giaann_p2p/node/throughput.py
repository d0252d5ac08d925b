"""The rate at which a peer works while it is busy, which its record announces."""

from collections.abc import Callable

_FORGETS = 60.0
"""Busy seconds after which earlier work counts half."""

_MOST = (1 << 32) - 1


class Throughput:
    """The recent rate of some kind of work, in units per busy second.

    The peer is busy while at least one task is in progress, so tasks that run at the same time add
    to the rate, and idle time does not lower it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._running = 0
        self._since = 0.0  # the time up to which busy seconds are counted
        self._amount = self._seconds = 0.0  # both decay

    def __repr__(self) -> str:
        return f"<Throughput: {self.rate:.1f} a second, {self._running} tasks in progress>"

    @property
    def rate(self) -> float:
        """Units per busy second; 0 before the first task has ended."""
        return self._amount / self._seconds if self._seconds else 0.0

    @property
    def whole(self) -> int:
        """The rate as a whole number that fits into a record."""
        return min(round(self.rate), _MOST)

    def begin(self) -> None:
        """Note that a task begins."""
        self._count()
        self._running += 1

    def end(self, amount: float) -> None:
        """Note that a task ends, and how many units it got done; 0 if it failed."""
        self._count()
        self._running -= 1
        self._amount += amount

    def _count(self) -> None:
        now = self._clock()
        if self._running:
            busy = max(0.0, now - self._since)
            kept = 0.5 ** (busy / _FORGETS)
            self._amount, self._seconds = self._amount * kept, self._seconds * kept + busy
        self._since = now
