"""The deltas that this peer carries for other holders: in memory, and for some minutes only.

A learner sends a delta once, to one of its holders, the *courier*. All holders fetch their rows
from there (see `couriers`). The courier need not be trusted, because rows carry their authors'
signatures, and it promises nothing: if it ends or needs the room, the learner finds another one.

The senders are not trusted either. A delta is stored under its sender's name, and a holder asks for
it only if that sender tells it to. Half of the room is for senders with standing and half for all
others, because a stranger may have any number of names.

When the number of shards doubles, all carried deltas are forgotten: a learner sends the chunks that
it is still pushing to a courier again, recounted (see `PushedChunk.doubled`).
"""

from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import DamagedError, MessageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.codec.parcel import check_sizes, decode, encode, sizes_of
from giaann_p2p.store.layout import Shards, among
from giaann_p2p.store.seal import Tree, check_shape, told
from giaann_p2p.swarm.replication.delta_checks import DeltaChecks
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.limits import MOST_CARRIED, carried_size
from giaann_p2p.swarm.wire.messages import Carry, Piece
from giaann_p2p.swarm.wire.shardset import packed, unpacked

_KEPT = 600.0
"""Maximum number of seconds for which a delta is carried."""
_UNPACKED = 15.0
"""Seconds after which a delta is kept in packed form only, in a tenth of the memory: by then most
holders have fetched their rows, and for a late holder the delta is unpacked again."""
_MOST = 64
"""Maximum number of deltas carried for senders with standing, and also for all others together."""
_PART = 8
"""Divisor of a peer's capacity: each half of the room takes at most this part of it, in addition to
the memory of the shards."""

_Key = tuple[Peer, bytes, int]


class _Unpacked(NamedTuple):
    """A carried delta in memory, whose rows are found by their shard."""

    delta: Delta
    tree: Tree
    homes: Shards
    """The shard of each row in the layout of the delta's seal, ascending."""
    rows: Ints
    """The index of each of these rows in the delta."""


class CarriedDelta:
    """A delta's rows for some shards, from which pieces are cut for the holders of the shards."""

    def __init__(self, carry: Carry, checks: DeltaChecks, now: float) -> None:
        """Check only sizes and shape, which is quick; DamagedError if these are invalid."""
        check_sizes(sizes_of(carry.parcel), checks.limits)
        layout = self._layout = checks.layout  # fixed, though the swarm's layout may grow
        check_shape(carry.seal, layout)
        self._made_in = carry.seal.layout(layout)
        self.carry, self.since = carry, now
        self.shards = unpacked(carry.shards, layout.shards)
        self.size = carried_size(carry.parcel, carry.seal)
        """Estimated size in memory, in bytes."""
        self._checks = checks
        self._unpacked: _Unpacked | DamagedError | None = None

    def piece(self, shards: Shards) -> Piece:
        """Cut out the rows of some shards; DamagedError if the delta is malformed."""
        if len(shards) == len(self.shards):
            carry = self.carry
            return Piece(carry.job, carry.chunk, carry.shards, carry.parcel, carry.seal)
        delta, tree, homes, rows = self._rows()
        cover = self._layout.cover(shards, self._made_in)
        first, last = homes.searchsorted(cover), homes.searchsorted(cover, side="right")
        taken = [rows[a:b] for a, b in zip(first, last, strict=True) if a < b]
        part = delta.take(np.sort(np.concatenate([*taken, rows[:0]])))
        seal = tree.seal(self.carry.seal.words, cover.tolist())
        named = packed(shards, self._layout.shards)
        return Piece(self.carry.job, self.carry.chunk, named, encode(part), seal)

    def repack(self) -> None:
        """Free the memory of the unpacked delta; an error is remembered."""
        if isinstance(self._unpacked, _Unpacked):
            self._unpacked = None

    def _rows(self) -> _Unpacked:
        """Return the unpacked delta; unpack it once, but raise its DamagedError each time."""
        found = self._unpacked  # the other thread may repack it meanwhile
        if found is None:
            try:
                found = self._unpack()
            except DamagedError as error:
                found = error
            self._unpacked = found
        if isinstance(found, DamagedError):
            raise DamagedError(str(found))
        return found

    def _unpack(self) -> _Unpacked:
        delta = decode(self.carry.parcel, self._checks.limits)
        tree = told(delta, self.shards, self._layout, self.carry.seal)
        rows = np.flatnonzero((delta.count > 0) | (delta.lengths > 0))
        homes = self._made_in.shards_of(delta.concept[rows], delta.feature[rows])
        order = np.argsort(homes, kind="stable")
        return _Unpacked(delta, tree, homes[order], rows[order])


class CarriedDeltas:
    """The deltas that one peer carries.

    One other thread at a time may call `piece`; everything else is called by one thread.
    """

    def __init__(self, checks: DeltaChecks, capacity: int) -> None:
        """Begin with nothing; `capacity` is the memory offered for shards, in bytes."""
        self._checks, self._each = checks, min(MOST_CARRIED, capacity // _PART)
        self._of: dict[bool, dict[_Key, CarriedDelta]] = {True: {}, False: {}}
        """The deltas of senders with standing (True), and of all others (False); the oldest
        first."""

    def __repr__(self) -> str:
        return f"<CarriedDeltas: {sum(map(len, self._of.values()))}>"

    def keep(self, carry: Carry, sender: Peer, stands: bool, now: float) -> None:
        """Keep a delta; if its half of the room is full, forget the oldest deltas there.

        `stands`: whether the sender has standing. MessageError or DamagedError if it is refused.
        """
        self._checks.check_sender(sender, carry.seal)
        new, half = CarriedDelta(carry, self._checks, now), self._of[stands]
        if new.size > self._each:
            raise MessageError(f"{new.size:,} bytes in memory are too much for one carried delta")
        half.pop(key := (sender, carry.job, carry.chunk), None)
        size = sum(one.size for one in half.values())
        while len(half) >= _MOST or size + new.size > self._each:
            size -= half.pop(next(iter(half))).size
        half[key] = new

    def expire(self, now: float) -> None:
        """Repack old deltas, and forget still older ones."""
        for half in self._of.values():
            for key, one in list(half.items()):
                if now >= one.since + _KEPT:
                    del half[key]
                elif now >= one.since + _UNPACKED:
                    one.repack()

    def piece(self, sender: Peer, job: bytes, chunk: int, shards: Shards) -> Piece:
        """Return the rows of some shards of a delta that is carried here for a sender.

        MessageError if they are not here, DamagedError if the delta is malformed.
        """
        key = sender, job, chunk
        found = self._of[True].get(key) or self._of[False].get(key)
        if found is None or not among(shards, found.shards).all():
            raise MessageError("this peer does not carry these rows")
        return found.piece(shards)
