"""A budget of bytes a second: what was spent is paid back by time."""


class Bandwidth:
    """A bucket that holds a second's worth, and may be overdrawn by the last thing taken."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate, self._left, self._when = rate, rate, now

    def free(self, now: float) -> bool:
        """Tell whether something may be asked for now."""
        if not self._rate:
            return True
        self._left = min(self._rate, self._left + (now - self._when) * self._rate)
        self._when = now
        return self._left > 0

    def spent(self, nbytes: int) -> None:
        """Note what came."""
        self._left -= nbytes
