"""Exponential backoff for a store that is full, or whose disk fails.

The rejected data may be fine and succeed later, so it is not fetched again each second. The pause
is one second after the first failure and doubles with each further one, up to a minute.
"""

from giaann_p2p.backoff import Backoff
from giaann_p2p.errors import DiskError, GiaannError, StoreFull

_BACKOFF = Backoff(first=1.0, longest=60.0)


class StoreBackoff:
    """The backoff of one store; only failures that are the store's own fault count."""

    def __init__(self) -> None:
        self._backoff = _BACKOFF

    def told(self, error: GiaannError | None, now: float) -> bool:
        """Record the outcome of a write; return whether the same write may succeed later.

        Failures during a pause, of writes already in flight, do not lengthen the pause.
        """
        if error is None:
            self._backoff = _BACKOFF
        if not isinstance(error, StoreFull | DiskError):
            return False
        if not self.rests(now):
            self._backoff = self._backoff.failed(now)
        return True

    def rests(self, now: float) -> bool:
        """Return whether the store is in a pause."""
        return self._backoff.holds(now)
