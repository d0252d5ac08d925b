"""A peer's clock: seconds since 1970 that never go backwards.

The wall clock is read once, at the start, and elapsed time is added to that. So changing the
machine's clock has no effect on a running peer. Time during which the machine slept counts as
elapsed, if the operating system reports it.
"""

import time
from collections.abc import Callable


def passed() -> float:
    """Return seconds since an arbitrary start; they include sleep where the system counts it."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Clock:
    """A peer's clock. Tests replace its two sources, by virtual time or by a wrong clock."""

    def __init__(
        self, wall: Callable[[], float] = time.time, since: Callable[[], float] = passed
    ) -> None:
        self._since = since
        self._zero = wall() - since()

    def __call__(self) -> float:
        """Return the current time in seconds since 1970."""
        return self._zero + self._since()
