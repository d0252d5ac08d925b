"""Arrival times of chunks at an owner, so that a founder can withdraw what a flood brought.

Authors' timestamps are not used, since an author could sign any time. Instead an owner examines its
own sets every EVERY seconds and logs what is new. The log covers one day; chunks that were held
when the log began count as old.
"""

from collections import deque
from collections.abc import Collection
from functools import reduce
from operator import or_

from giaann_p2p.store.applied import Applied

EVERY = 5.0
"""Seconds between two looks."""
DAY = 24 * 3600.0
"""Seconds for which an entry is kept."""


class ArrivalLog:
    """The log of arrivals. Invariant: entries are in order of time, and no two share a chunk."""

    def __init__(self) -> None:
        self._entries = deque[tuple[float, Applied]]()
        self._held: Applied | None = None
        self._next = 0.0

    def __repr__(self) -> str:
        return f"<ArrivalLog: {sum(len(new) for _, new in self._entries):,} chunks>"

    def is_due(self, now: float) -> bool:
        """Return whether the next look is due."""
        return now >= self._next

    def look(self, sets: Collection[Applied], now: float) -> None:
        """Log the chunks that are new in the sets of all shards here."""
        self._next = now + EVERY
        while self._entries and self._entries[0][0] < now - DAY:
            self._entries.popleft()
        held = reduce(or_, {id(one): one for one in sets}.values(), Applied())
        before, self._held = self._held, held
        if before is None or held.fingerprint == before.fingerprint:
            return
        if new := held - before:
            self._entries.append((now, new))

    def since(self, then: float) -> Applied:
        """Return the chunks logged since `then`; some may have come up to EVERY seconds before."""
        late = [new for at, new in self._entries if at >= then]
        return reduce(or_, late, Applied())
