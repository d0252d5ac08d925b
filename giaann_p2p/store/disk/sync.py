"""When a log waits for the disk: the price of an append, and what a power cut may take."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Sync:
    """At most so many seconds after the last time; 0 is with each append, infinity never."""

    seconds: float

    def due(self, since: float) -> bool:
        """Tell whether it is time, so many seconds after the last sync."""
        went_back = since < 0 and self.seconds < math.inf  # such a clock tells nothing
        return since >= self.seconds or went_back


ALWAYS, NEVER = Sync(0), Sync(math.inf)
