"""A token bucket that limits bytes per second."""


class Bandwidth:
    """Bucket for one second's worth of bytes, which one transfer may overdraw. Rate 0: no limit."""

    def __init__(self, rate: float, now: float) -> None:
        self._rate, self._left, self._when = rate, rate, now

    def free(self, now: float) -> bool:
        """Return whether anything may be requested now."""
        if not self._rate:
            return True
        self._left = min(self._rate, self._left + (now - self._when) * self._rate)
        self._when = now
        return self._left > 0

    def spent(self, nbytes: int) -> None:
        """Charge the bytes that arrived."""
        self._left -= nbytes
