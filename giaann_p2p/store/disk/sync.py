"""How often a log syncs: the less often, the cheaper an append, and the more a power cut loses.

Storage peers and brains use `ALWAYS`, the default of `Store.at` and `Store.open`: what they
acknowledge is on the disk. Only tests and benchmarks choose otherwise.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Sync:
    """A policy: sync at the first append once `seconds` have passed since the last sync.

    0 seconds mean a sync at each append; infinity means none.
    """

    seconds: float

    def due(self, since: float) -> bool:
        """Return whether a sync is due, `since` seconds after the last sync."""
        went_back = since < 0 and self.seconds < math.inf  # the clock was set back: sync now
        return since >= self.seconds or went_back


ALWAYS, NEVER = Sync(0), Sync(math.inf)
