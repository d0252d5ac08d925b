"""A token bucket that limits bytes per second."""


class Bandwidth:
    """A token bucket with room for one second's worth of bytes. A rate of 0 means no limit.

    One transfer may overdraw the bucket.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate, self._left, self._when = rate, rate, now

    def free(self, now: float) -> bool:
        """Return whether more data may be requested now."""
        if not self._rate:
            return True
        self._left = min(self._rate, self._left + (now - self._when) * self._rate)
        self._when = now
        return self._left > 0

    def spent(self, nbytes: int) -> None:
        """Charge bytes that have arrived; the bucket may drop below zero."""
        self._left -= nbytes
