"""Cold copies: when a shard's copy is made, brought back, and forgotten.

1. A shard leaves memory only once a recent copy of it is on the disk: first `Cool`, then `Drop`. A
   peer without a disk makes no copies.
2. A copy with chunks that the shard in memory lacks is merged into it (`Thaw`) before that shard
   may begin without a ready replica elsewhere.
3. A copy of a shard that is not in memory is *offered* when fewer than a quorum of ready replicas
   are left: the shard comes back into memory as a syncing replica, from which its owners fetch.
   Once they have proved that they hold it, it is cooled again.
4. A copy is forgotten when the shard is ready here with everything that the copy has; or when the
   copy is too old or the copies take too much disk, oldest first. The latter two require that a
   quorum of keepers has the shard ready: content that only newcomers hold is never forgotten,
   whatever the budget.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError, GiaannError, UsageError
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.cold import Cold
from giaann_p2p.swarm.replication.shared import Shared
from giaann_p2p.swarm.wire.actions import Action, Cool, Forget, Hold, Thaw
from giaann_p2p.swarm.wire.replica import ReplicaState

_AT_ONCE = 64
"""Maximum number of orders of copies and merges in flight."""
_DAY = 24 * 3600.0
_FRESH = 60.0
"""Seconds for which a copy counts as recent."""
_SOON, _LATER = 10.0, 600.0
"""Seconds until a retry: after the disk or memory had no room, and after a copy could not be
merged, which rarely succeeds later."""


class _Rest(NamedTuple):
    until: float
    useless: bool
    """Whether the copy could not be merged; then readiness does not wait for it."""


class ColdCopies:
    """Decides on the cold copies of one peer. Orders are queued; the store does one at a time."""

    def __init__(self, shared: Shared) -> None:
        self._settings, self._quorum = shared.settings, shared.rules.quorum
        self._replicas, self._others = shared.replicas, shared.others
        self._held, self._deeds = shared.held, shared.writes
        self._under_way = set[int]()
        self._few_since: dict[int, float] = {}
        self._rests: dict[int, _Rest] = {}

    def __repr__(self) -> str:
        return f"<ColdCopies: {self._held.cold!r}, {len(self._few_since)} shards held by few>"

    def may_drop(self, shard: int, mine: Applied, now: float) -> bool:
        """Return whether a shard's cold copy is good enough for the shard to leave memory.

        While the swarm learns, a copy lacks the chunks that arrived since it was made. The owners
        have proved that they hold those chunks, and a complete copy might never be reached.
        """
        if not self._held.cold.durable:
            return True
        copy = self._held.cold.copies.get(shard)
        return copy is not None and (mine <= copy.chunks or now - copy.since < _FRESH)

    def cool(self, shard: int, now: float) -> list[Action]:
        """Order a copy of a shard, unless one is in flight, failed recently, or has no room."""
        if not self._may_order(shard, now) or self._is_full():
            return []
        self._under_way.add(shard)
        number = self._deeds.number(partial(self._cooled, shard))
        return [Cool(number, shard, now)]

    def awaits(self, shard: int, mine: Applied) -> bool:
        """Return whether a copy has chunks that are still to be merged into memory."""
        copy = self._held.cold.copies.get(shard)
        if copy is None or copy.chunks <= mine:
            return False
        rest = self._rests.get(shard)
        return rest is None or not rest.useless

    def due(self, leaving: bool, now: float) -> list[Action]:
        """Merge, offer and forget copies, by the rules of this module."""
        copies = self._held.cold.copies
        if not copies:  # the common case
            return []
        self._rests = {n: rest for n, rest in self._rests.items() if now < rest.until}
        sets = self._held.sets(copies)
        actions = self._merged(sets, now)
        if not leaving:
            actions += self._offered(now)
        return actions + self._forgotten(sets, now)

    def _merged(self, sets: dict[int, Applied], now: float) -> list[Action]:
        actions: list[Action] = []
        for shard, mine in sets.items():
            lacks = not self._held.cold.copies[shard].chunks <= mine
            if lacks and self._replicas.holds(shard) and self._may_order(shard, now):
                self._under_way.add(shard)
                number = self._deeds.taking([shard], partial(self._thawed, shard))
                actions.append(Thaw(number, shard))
        return actions

    def _offered(self, now: float) -> list[Action]:
        """Bring back shards that had too few ready replicas for `offer` seconds."""
        few = [n for n in self._held.cold.copies if not self._replicas.holds(n)]
        few = [n for n in few if self._ready(n, now) < self._quorum]
        self._few_since = {n: self._few_since.get(n, now) for n in few}
        due = [n for n, since in self._few_since.items() if now - since >= self._settings.offer]
        for shard in due:
            self._replicas.offer(shard, now)
        return [Hold(np.array(sorted(due), np.uint16))] if due else []

    def _ready(self, shard: int, now: float) -> int:
        ready = self._others.ready(shard, now)
        return sum(self._others.reachable(peer, now) for peer in ready)

    def _forgotten(self, sets: dict[int, Applied], now: float) -> list[Action]:
        copies = self._held.cold.copies
        gone = [
            shard
            for shard, mine in sets.items()
            if self._replicas.state(shard) is ReplicaState.READY and copies[shard].chunks <= mine
        ]
        left = self._held.cold.nbytes - sum(copies[shard].nbytes for shard in gone)
        for copy in sorted(copies.values(), key=lambda copy: (copy.since, copy.shard)):
            if copy.shard in gone or copy.shard in sets:
                continue
            is_old = now - copy.since > self._settings.cold_days * _DAY
            if (is_old or left > self._settings.cold_bytes) and self._is_spare(copy, now):
                gone.append(copy.shard)
                left -= copy.nbytes
        return [Forget(np.array(sorted(gone), np.uint16))] if gone else []

    def _is_spare(self, copy: Cold, now: float) -> bool:
        ready = self._others.ready(copy.shard, now)
        return sum(map(self._others.keeps, ready)) >= self._quorum

    def _is_full(self) -> bool:
        """Return whether the copies exceed their budget of disk space."""
        return self._held.cold.nbytes > self._settings.cold_bytes

    def _may_order(self, shard: int, now: float) -> bool:
        rest = self._rests.get(shard)
        is_resting = rest is not None and now < rest.until
        is_free = shard not in self._under_way and len(self._under_way) < _AT_ONCE
        return is_free and not is_resting

    def _cooled(self, shard: int, error: GiaannError | None, now: float) -> list[Action]:
        self._under_way.discard(shard)
        if error is not None:
            self._rests[shard] = _Rest(now + _SOON, useless=False)
        return []

    def _thawed(self, shard: int, error: GiaannError | None, now: float) -> list[Action]:
        self._under_way.discard(shard)
        if error is not None:
            useless = isinstance(error, UsageError | DamagedError)
            self._rests[shard] = _Rest(now + (_LATER if useless else _SOON), useless)
        return []
