"""Capacity: how full storage peers are, and which shards can take no more updates.

A peer is full while the last update that it refused would still not fit. It then announces all of
its capacity as used, because the few bytes that are left are of no use to writers.

How many shards a declared capacity brings is decided in `placement`.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping

import msgspec
import numpy as np

from giaann_p2p.swarm.members.claims import Mask
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Announcement

FULL, NEARLY_FULL = "full", "nearly full"
_NEARLY = 0.85
"""Share of its capacity in use, from 0 to 1, from which a peer counts as nearly full."""
_LATELY = 60.0
"""Seconds over which a peer's growth is measured."""
_LEAST = 5.0
"""A peer's growth is reported as 0 until its samples span this many seconds."""
_MOST_GROWTH = (1 << 32) - 1
"""Highest growth that a record can report, in bytes per second."""


class Room:
    """Tracks how much of a storage peer's capacity is used, and how fast that grows."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._needed = 0  # bytes of the last update that was refused because it did not fit
        self._samples: deque[tuple[float, int]] = deque()

    def __repr__(self) -> str:
        return f"<Room: {self.used:,} of {self.capacity:,} bytes are used>"

    def refused(self, needed: int) -> None:
        """Note that an update of `needed` bytes was refused, because it did not fit."""
        self._needed = needed

    def look(self, taken: int, now: float) -> None:
        """Take a sample: `taken` bytes of the capacity are in use now."""
        self._samples.append((now, taken))
        while self._samples[0][0] < now - _LATELY:
            self._samples.popleft()

    @property
    def used(self) -> int:
        """Bytes in use; the whole capacity while the last refused update would still not fit."""
        taken = self._samples[-1][1] if self._samples else 0
        return self.capacity if taken + self._needed > self.capacity else taken

    @property
    def growth(self) -> int:
        """Recent growth of the bytes in use, in bytes per second; 0 if they shrink."""
        if not self._samples:
            return 0
        (since, before), (now, taken) = self._samples[0], self._samples[-1]
        if now - since < _LEAST:
            return 0
        return min(max(0, int((taken - before) / (now - since))), _MOST_GROWTH)

    @property
    def level(self) -> str:
        """How full the peer is: FULL, NEARLY_FULL, or an empty string if it has room."""
        return level(self.used, self.capacity)


class Filling(msgspec.Struct, frozen=True):
    """A storage peer that is nearly full."""

    peer: Peer
    share: float
    """Share of the peer's capacity that is in use, from 0 to 1."""
    seconds: float | None
    """Time until the peer is full at its present rate of growth, in seconds; None if it does not
    grow."""


def level(used: int, capacity: int) -> str:
    """Return how full a peer is: FULL, NEARLY_FULL, or an empty string if it has room."""
    if not capacity or used < _NEARLY * capacity:
        return ""
    return FULL if used >= capacity else NEARLY_FULL


def full(live: Iterable[Announcement]) -> list[Peer]:
    """Return the storage peers that are full."""
    return [said.peer for said in live if _level(said) == FULL]


def filling(live: Iterable[Announcement]) -> list[Filling]:
    """Return the storage peers that are nearly full, and when they will be full."""
    return [_filling(said) for said in live if _level(said) == NEARLY_FULL]


def closed(
    placement: Placement, full: Collection[Peer], quorum: int, beside: Mapping[Peer, Mask]
) -> int:
    """Return how many shards cannot accept updates, because too many of their holders are full.

    A shard counts in two cases: fewer than a quorum of its owners have room; or peers `beside` the
    owners hold it as well, and all of these are full, so that a commit would wait for one of them
    (see `Writer`). The result is 0 while shards have fewer owners than a quorum, because then more
    room would not help.
    """
    owners = placement.owner_matrix
    if not full or owners.shape[1] < quorum:
        return 0
    has_room = np.array([peer not in full for peer in placement.peers])
    lacks_quorum = has_room[owners].sum(axis=1) < quorum
    held = np.zeros_like(lacks_quorum)
    held_with_room = np.zeros_like(lacks_quorum)
    for peer, shards in beside.items():
        held |= shards
        if peer not in full:
            held_with_room |= shards
    return int(np.count_nonzero(lacks_quorum | (held & ~held_with_room)))


def _level(said: Announcement) -> str:
    return level(said.used, said.capacity) if said.role == "storage" else ""


def _filling(said: Announcement) -> Filling:
    growth = said.load.growth
    seconds = (said.capacity - said.used) / growth if growth else None
    return Filling(said.peer, said.used / said.capacity, seconds)
