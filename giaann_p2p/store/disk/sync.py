"""The policy by which a log syncs: the cost of an append, against the loss in a power cut."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Sync:
    """Sync once `seconds` have passed since the last sync: 0 at each append, infinity never."""

    seconds: float

    def due(self, since: float) -> bool:
        """Return whether a sync is due, `since` seconds after the last one."""
        went_back = since < 0 and self.seconds < math.inf  # the clock was set back: sync now
        return since >= self.seconds or went_back


ALWAYS, NEVER = Sync(0), Sync(math.inf)
