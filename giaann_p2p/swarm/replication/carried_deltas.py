"""The deltas that this peer carries for other holders: in memory, and for some minutes.

A learner sends a delta once, to one of its holders, the *courier*. All holders fetch their rows
from there (see `couriers`). The courier need not be trusted, since rows carry
their authors' signatures, and it promises nothing: if it ends or needs the room, the learner finds
another one.

A sender fills at most half of the room, and so do all senders without standing together, because a
stranger may have any number of names.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import MessageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.parcel import decode, encode
from giaann_p2p.store.layout import Shards, among
from giaann_p2p.store.seal import Tree, told
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import MOST_CARRIED, carried_size
from giaann_p2p.swarm.wire.messages import BUSY, Carry, Piece
from giaann_p2p.swarm.wire.shardset import packed, unpacked

_KEPT = 600.0
"""Seconds for which a delta is kept at most."""
_PART = 4
"""The part of a peer's capacity, as a divisor, that all carried deltas may take at most, in memory,
besides the shards."""


class _Unpacked(NamedTuple):
    """A carried delta in memory, whose rows are found by their shard."""

    delta: Delta
    tree: Tree
    homes: Shards
    """The shard of each row, ascending."""
    rows: Ints
    """The index of each of these rows in the delta."""


class CarriedDelta:
    """A delta's rows for some shards, from which pieces are cut for the holders of the shards."""

    def __init__(
        self, carry: Carry, sender: Peer, stands: bool, checks: DeltaChecks, now: float
    ) -> None:
        self.carry, self.sender, self.stands, self.since = carry, sender, stands, now
        self.shards = unpacked(carry.shards, checks.layout.shards)
        self.size = carried_size(carry.parcel)
        """Its size in memory, in bytes: an estimate."""
        self._checks = checks

    def piece(self, shards: Shards) -> Piece:
        """Cut out the rows of some shards; DamagedError if the delta is malformed."""
        if len(shards) == len(self.shards):
            carry = self.carry
            return Piece(carry.job, carry.chunk, carry.shards, carry.parcel, carry.seal)
        delta, tree, homes, rows = self._unpacked
        first, last = homes.searchsorted(shards), homes.searchsorted(shards, side="right")
        taken = [rows[a:b] for a, b in zip(first, last, strict=True) if a < b]
        part = delta.take(np.sort(np.concatenate([*taken, rows[:0]])))
        seal = tree.seal(self.carry.seal.words, shards.tolist())
        named = packed(shards, self._checks.layout.shards)
        return Piece(self.carry.job, self.carry.chunk, named, encode(part), seal)

    @cached_property
    def _unpacked(self) -> _Unpacked:
        layout = self._checks.layout
        delta = decode(self.carry.parcel, self._checks.limits)
        tree = told(delta, self.shards, layout, self.carry.seal)
        rows = np.flatnonzero((delta.count > 0) | (delta.lengths > 0))
        homes = layout.shards_of(delta.concept[rows], delta.feature[rows])
        order = np.argsort(homes, kind="stable")
        return _Unpacked(delta, tree, homes[order], rows[order])


class CarriedDeltas:
    """The deltas that one peer carries.

    Other threads may call `piece`; everything else is called by one thread.
    """

    def __init__(self, checks: DeltaChecks, capacity: int) -> None:
        """Begin with nothing; `capacity` is the memory offered for shards, in bytes."""
        self._checks, self._each = checks, min(MOST_CARRIED, capacity // (2 * _PART))
        self._all: dict[tuple[bytes, int], CarriedDelta] = {}  # the oldest first

    def __repr__(self) -> str:
        return f"<CarriedDeltas: {len(self._all)}, {sum(one.size for one in self._all.values()):,}>"

    def keep(self, carry: Carry, sender: Peer, stands: bool, now: float) -> None:
        """Keep a delta, instead of the oldest ones if there is no room; MessageError if it cannot.

        `stands`: whether the sender has standing.
        """
        self._checks.check_sender(sender, carry.seal)
        new, key = CarriedDelta(carry, sender, stands, self._checks, now), (carry.job, carry.chunk)
        self.expire(now)
        if key in self._all:  # perhaps its sender asks twice, or a stranger guessed the job's name
            if self._all[key].carry == carry:
                return
            raise MessageError(f"{BUSY}: this peer carries other rows of this chunk already")
        if new.size > self._each:
            raise MessageError(f"{new.size:,} bytes in memory are too many to carry")

        def make_room(most: int, of: Callable[[CarriedDelta], bool]) -> None:
            while self._size(of) + new.size > most:
                del self._all[next(key for key, one in self._all.items() if of(one))]

        make_room(self._each, lambda one: one.sender == sender)
        if not stands:
            make_room(self._each, lambda one: not one.stands)
        make_room(2 * self._each, lambda one: True)
        self._all[key] = new

    def expire(self, now: float) -> None:
        """Forget the deltas that were kept long enough."""
        for key, one in list(self._all.items()):
            if now >= one.since + _KEPT:
                del self._all[key]

    def find(self, job: bytes, chunk: int) -> CarriedDelta | None:
        """Return the delta of a chunk, if it is carried."""
        return self._all.get((job, chunk))

    def piece(self, wanted: Applied, shards: Shards) -> Piece | None:
        """Return the rows of some shards, if only one chunk is wanted and it is carried for them.

        DamagedError if the delta is malformed.
        """
        if len(wanted) != 1:
            return None
        (job,) = wanted
        (chunk,) = wanted.of(job)
        found = self.find(job, chunk)
        if found is None or not among(shards, found.shards).all():
            return None
        return found.piece(shards)

    def _size(self, of: Callable[[CarriedDelta], bool]) -> int:
        return sum(one.size for one in self._all.values() if of(one))
