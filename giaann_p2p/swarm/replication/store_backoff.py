"""Exponential backoff for a store that is full, or whose disk fails.

Without a pause, the same data would be fetched and rejected again and again. The pause is one
second after the first failure and doubles with each further failure, up to a minute.
"""

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import DiskError, GiaannError, StoreFull

_BACKOFF = Backoff(first=1.0, longest=60.0)


class StoreBackoff:
    """The backoff of one store; only a full store and disk errors count as failures."""

    def __init__(self) -> None:
        self._backoff = _BACKOFF

    def told(self, error: GiaannError | None, now: float) -> bool:
        """Record the outcome of a write; return whether it failed but may succeed later.

        A failure during a pause, of a write that was already in flight, does not lengthen the
        pause.
        """
        if error is None:
            self._backoff = _BACKOFF
        if not isinstance(error, StoreFull | DiskError):
            return False
        if not self.rests(now):
            self._backoff = self._backoff.failed(now)
        return True

    def rests(self, now: float) -> bool:
        """Return whether the store failed so recently that it should get no more data yet."""
        return self._backoff.holds(now)
