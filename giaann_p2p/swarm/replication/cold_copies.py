"""Cold copies: when a shard's copy is written to disk, brought back into memory, and deleted.

1. A shard leaves memory only once a recent copy of it is on the disk: first `Cool`, then `Drop`. A
   peer without a disk makes no copies.
2. If a copy has chunks that the shard in memory lacks, the copy is merged into the shard (`Thaw`).
   A shard that is ready at no other peer becomes ready here only after that merge.
3. A copy of a shard that is not in memory is *offered* when fewer than a quorum of ready replicas
   are left: the shard comes back into memory as a syncing replica, from which its owners fetch.
   Once the owners have proved that they hold the shard, it leaves memory again.
4. A copy is deleted when the shard is ready here with every chunk of the copy. It is also deleted
   when it is too old, or when all copies take too much disk, oldest first; but only while a quorum
   of keepers has the shard ready. Content that only newcomers hold is never deleted, whatever the
   budget.
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
"""Maximum number of orders to the store, to write or merge a cold copy, in flight at a time."""
_DAY = 24 * 3600.0
_FRESH = 60.0
"""Seconds for which a cold copy counts as recent."""
_SOON, _LATER = 10.0, 600.0
"""Seconds until a cold copy is retried: _SOON if the disk or memory had no room, and _LATER if the
copy cannot be merged, because another try rarely succeeds."""


class _Rest(NamedTuple):
    """The pause after a cold copy failed to be written or merged."""

    until: float
    """Time at which the pause ends."""
    useless: bool
    """Whether the copy cannot be merged at all; the shard then becomes ready without it."""


class ColdCopies:
    """The cold copies of one peer. Its orders are queued, and the store does one at a time."""

    def __init__(self, shared: Shared) -> None:
        self._settings, self._shared = shared.settings, shared
        self._replicas, self._others = shared.replicas, shared.others
        self._held, self._deeds = shared.held, shared.writes
        self._under_way = set[int]()
        self._few_since: dict[int, float] = {}
        self._rests: dict[int, _Rest] = {}

    def __repr__(self) -> str:
        return f"<ColdCopies: {self._held.cold!r}, {len(self._few_since)} shards held by few>"

    def may_drop(self, shard: int, mine: Applied, now: float) -> bool:
        """Return whether a shard's cold copy is complete or recent enough to drop the shard.

        A recent copy may lack the last chunks: the owners have proved that they hold those chunks,
        and while the swarm learns, a complete copy might never be reached.
        """
        if not self._held.cold.durable:
            return True
        copy = self._held.cold.copies.get(shard)
        return copy is not None and (mine <= copy.chunks or now - copy.since < _FRESH)

    def cool(self, shard: int, now: float) -> list[Action]:
        """Order a cold copy of a shard; do nothing without room, or soon after a failed attempt."""
        if not self._may_order(shard, now) or self._is_full():
            return []
        self._under_way.add(shard)
        number = self._deeds.number(partial(self._cooled, shard))
        return [Cool(number, shard, now)]

    def awaits(self, shard: int, mine: Applied) -> bool:
        """Return whether a shard's cold copy has chunks that are still to be merged into `mine`."""
        copy = self._held.cold.copies.get(shard)
        if copy is None or copy.chunks <= mine:
            return False
        rest = self._rests.get(shard)
        return rest is None or not rest.useless

    def due(self, leaving: bool, now: float) -> list[Action]:
        """Merge cold copies into shards, bring shards back from copies, and delete old copies."""
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
        """Bring back from cold copies the shards that had too few ready replicas for too long."""
        few = [n for n in self._held.cold.copies if not self._replicas.holds(n)]
        few = [n for n in few if self._ready(n, now) < self._shared.rules.quorum]
        self._few_since = {n: self._few_since.get(n, now) for n in few}
        due = [n for n, since in self._few_since.items() if now - since >= self._settings.offer]
        for shard in due:
            self._replicas.offer(shard, now)
        return [Hold(np.array(sorted(due), np.uint16))] if due else []

    def _ready(self, shard: int, now: float) -> int:
        ready = self._others.ready(shard, now)
        return sum(self._others.not_suspected(peer, now) for peer in ready)

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
        return sum(map(self._others.keeps, ready)) >= self._shared.rules.quorum

    def _is_full(self) -> bool:
        """Return whether the cold copies exceed their budget of disk space."""
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
