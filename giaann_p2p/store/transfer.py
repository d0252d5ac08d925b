"""Transfers a shard between stores in parts: each verified, in any order, resumable.

The sender captures the shard; its `Manifest` states the digest of each part and of their sum. The
receiver requests the parts that it lacks from any peer that has the same manifest. It verifies each
part's digest on arrival and keeps the encoded bytes. In the end it unpacks all parts at once, in
a thread for which nothing waits, and verifies that they add up to the digest of the shard.
"""

import hashlib
from itertools import pairwise

import msgspec
import numpy as np

from giaann_p2p.errors import DamagedError, UsageError
from giaann_p2p.model.delta import EMPTY, Delta, first_of_runs, total
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.codec.damage import check
from giaann_p2p.store.codec.parcel import Limits, decode, encode, sizes_of
from giaann_p2p.store.content import Content
from giaann_p2p.store.layout import MOST_SHARDS

ALONE = 1 << 14
"""The most neurons of a shard beyond two per connection. Each neuron is an end of a connection,
except a few words that were always the last of their sentence; without the limit, a few bytes could
stand for any number of neurons."""
PART = 1 << 18
"""The number of connections in a part after which the next row begins a new part."""


class Manifest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The description of a shard that is sent: its digest, its chunks, and the digests of parts."""

    shard: int
    digest: bytes
    applied: bytes
    parts: list[bytes]
    """The digest of each part's bytes: it shows at once which peer sent a wrong one."""
    connections: int

    def to_bytes(self) -> bytes:
        """Return the canonical encoding of this manifest."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Manifest":
        """Decode what `to_bytes` returned; DamagedError if it is something else."""
        try:
            found = msgspec.msgpack.decode(data, type=cls)
        except msgspec.MsgspecError as error:
            raise DamagedError(f"no manifest of a shard: {error}") from None
        check(0 <= found.shard < MOST_SHARDS, f"a manifest of shard {found.shard}")
        check(0 <= found.connections < 1 << 31, f"a shard of {found.connections} connections")
        most = found.connections // PART + 1
        check(len(found.parts) <= most, f"{len(found.parts)} parts of a shard")
        return found


class Export:
    """A captured shard, encoded for sending."""

    def __init__(self, held: Content) -> None:
        if len(held.shards) != 1:
            raise UsageError(f"one shard is sent at a time, not {len(held.shards)}")
        (shard,), (self.applied,) = held.shards.tolist(), held.applied
        self._parts = [encode(part) for part in cut(held.delta)]
        self.manifest = Manifest(
            shard,
            held.digest.to_bytes(32, "little"),
            self.applied.to_bytes(),
            list(map(_digest, self._parts)),
            held.delta.connections,
        )

    @property
    def size(self) -> int:
        """The size of all parts in bytes."""
        return sum(map(len, self._parts))

    def part(self, number: int) -> bytes:
        """Return a part, encoded as a parcel."""
        if not 0 <= number < len(self._parts):
            raise UsageError(f"there are parts 0 to {len(self._parts) - 1}, not {number}")
        return self._parts[number]


class Import:
    """Collects the parts of a shard, as bytes."""

    def __init__(self, manifest: Manifest, limits: Limits) -> None:
        self.manifest = manifest
        self._limits = limits
        self.applied = Applied.received(manifest.applied)
        """The chunks that the shard is the sum of."""
        self._parts: dict[int, bytes | memoryview] = {}
        self._left = manifest.connections
        self._alone = ALONE

    @property
    def size(self) -> int:
        """The number of bytes received."""
        return sum(map(len, self._parts.values()))

    @property
    def missing(self) -> list[int]:
        """The numbers of the parts not received yet."""
        numbers = range(len(self.manifest.parts))
        return [number for number in numbers if number not in self._parts]

    def take(self, number: int, part: bytes | memoryview) -> None:
        """Add a part; DamagedError, and no change, if its digest or its stated sizes are wrong.

        Only `content` checks whether the part is a valid parcel.
        """
        parts = self.manifest.parts
        if not 0 <= number < len(parts):
            raise DamagedError(f"part {number} of {len(parts)}")
        if _digest(part) != parts[number]:
            raise DamagedError(f"part {number} is not the one that was promised")
        if number in self._parts:
            return
        sizes = sizes_of(part)
        alone = max(0, sizes.neurons - 2 * sizes.connections)
        check(
            sizes.connections <= self._left,
            f"part {number} has more connections than were promised",
        )
        check(alone <= self._alone, f"part {number} has too many neurons without connections")
        self._left -= sizes.connections
        self._alone -= alone
        self._parts[number] = part

    def content(self) -> Content:
        """Return the shard's content; DamagedError if the parts do not add up to its digest.

        This is slow; it may run in any thread.
        """
        if self.missing:
            raise UsageError(f"{len(self.missing)} parts are still missing")
        parts = list(self._parts.values())
        try:
            delta = total([decode(part, self._limits) for part in parts]) if parts else EMPTY
        except OverflowError as error:
            raise DamagedError(f"the parts of a shard add up to too much: {error}") from None
        shards = np.array([self.manifest.shard], np.uint16)
        held = Content(shards, [self.applied], delta, parts[0] if len(parts) == 1 else b"")
        if held.digest.to_bytes(32, "little") != self.manifest.digest:
            raise DamagedError(
                f"the parts of shard {self.manifest.shard} do not add up to what was promised"
            )
        return held


def cut(delta: Delta) -> list[Delta]:
    """Split a delta by rows into parts of about equal size, which add up to it."""
    if not delta.neurons:
        return []
    first = np.flatnonzero(first_of_runs(delta.row_starts[:-1] // PART)).tolist()
    return [delta.rows(*rows) for rows in pairwise([*first, delta.neurons])]


def _digest(part: bytes | memoryview) -> bytes:
    return hashlib.blake2b(part, digest_size=16).digest()
