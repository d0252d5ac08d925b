"""A log of when chunks arrived at an owner, so that a founder can withdraw a flood of poison.

Timestamps by authors would not help, because an author can sign any time. Instead an owner compares
its own sets of chunks every EVERY seconds and logs the new ones. The log covers one day. Chunks
that the owner already had when the log began count as old.
"""

from collections import deque
from collections.abc import Collection
from functools import reduce
from operator import or_

from giaann_p2p.store.applied import Applied

EVERY = 5.0
"""Seconds between two checks for new chunks."""
DAY = 24 * 3600.0
"""Seconds for which an entry of the arrival log is kept."""


class ArrivalLog:
    """One owner's log of when chunks arrived.

    Invariant: entries are in order of time, and no chunk is in two entries.
    """

    def __init__(self) -> None:
        self._entries = deque[tuple[float, Applied]]()
        self._held: Applied | None = None
        self._next = 0.0

    def __repr__(self) -> str:
        return f"<ArrivalLog: {sum(len(new) for _, new in self._entries):,} chunks>"

    def is_due(self, now: float) -> bool:
        """Return whether the next check for new chunks is due."""
        return now >= self._next

    def look(self, sets: Collection[Applied], now: float) -> None:
        """Log the chunks that arrived since the last call; `sets` are the chunks of each shard."""
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
        """Return the chunks logged since time `then`.

        Some of them may have arrived up to EVERY seconds before `then`.
        """
        late = [new for at, new in self._entries if at >= then]
        return reduce(or_, late, Applied())
