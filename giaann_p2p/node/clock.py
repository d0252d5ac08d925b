"""The time that a peer goes by: seconds since 1970 that never go back.

The machine's clock is looked at once; what is added is the time that has passed since. So a clock
that is set, or that leaps, changes nothing here; a machine that slept has the time it slept, too.
"""

import time
from collections.abc import Callable


def passed() -> float:
    """Return seconds since whenever, those while the machine slept as well where it can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class Clock:
    """A peer's own; both sources can be others: a loop's made-up time, or a clock that is wrong."""

    def __init__(
        self, wall: Callable[[], float] = time.time, since: Callable[[], float] = passed
    ) -> None:
        self._since = since
        self._zero = wall() - since()

    def __call__(self) -> float:
        """Return what time it is."""
        return self._zero + self._since()
