"""Exponential backoff: the pause after failures in a row.

A `Backoff` reads no clock: its user passes the time of a failure, and keeps the new value.
"""

from math import inf
from typing import NamedTuple, Self

_DOUBLINGS = 64
"""Maximum number of doublings; further ones would only overflow."""


class Backoff(NamedTuple):
    """A pause of `first` seconds, doubled with each further failure, up to `longest`."""

    first: float
    longest: float = inf
    failures: int = 0
    """Number of failures in a row."""
    since: float = -inf
    """Time of the last failure."""

    @property
    def pause(self) -> float:
        """Seconds from the last failure to the next try; 0 without a failure."""
        if not self.failures:
            return 0.0
        return min(self.first * 2.0 ** min(self.failures - 1, _DOUBLINGS), self.longest)

    @property
    def until(self) -> float:
        """Time at which the pause ends."""
        return self.since + self.pause

    def holds(self, now: float) -> bool:
        """Return whether the pause has not ended yet."""
        return now < self.until

    def failed(self, now: float = -inf) -> Self:
        """Return the backoff after one more failure; a loop that sleeps needs no `now`."""
        return self._replace(failures=self.failures + 1, since=now)
