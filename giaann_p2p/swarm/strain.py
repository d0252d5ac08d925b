"""How long to leave a store alone that has no room, or whose disk fails.

What it could not take in may be fine, and do later: so it is not fetched anew each second. The
first failure costs a second, each further one twice as long as the last (see `bypass_for`).
"""

from giaann_p2p.errors import DiskError, GiaannError, StoreFull
from giaann_p2p.swarm.doubts import bypass_for


class Strain:
    """What came of writes, as far as it is the store's own fault."""

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0.0

    def told(self, error: GiaannError | None, now: float) -> bool:
        """Note what came of a write; tell whether the same one may do later.

        Failures while the store is left alone, of writes on their way, count as one.
        """
        if error is None:
            self._failures = 0
        if not isinstance(error, StoreFull | DiskError):
            return False
        if not self.rests(now):
            self._failures += 1
            self._until = now + bypass_for(self._failures)
        return True

    def rests(self, now: float) -> bool:
        """Tell whether the store is to be left alone."""
        return self._failures > 0 and now < self._until
