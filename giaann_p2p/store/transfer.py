"""Transfers a shard between stores in parts, which are verified one by one and come in any order.

The sender captures the shard; its `Manifest` states the digest of each part and of their sum. The
receiver requests the parts that it lacks, from any peer that has the same manifest, so a transfer
can be resumed. It verifies each part's digest on arrival and keeps the encoded bytes. In the end it
unpacks all parts at once, in a background thread, and verifies that they add up to the digest of
the shard.
"""

import hashlib
from itertools import pairwise
from typing import Annotated

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
"""The most neurons that a shard may have beyond two per connection. Almost every neuron is an end
of a connection; only a few words were always the last of their sentence. Without this limit, a few
bytes could stand for any number of neurons."""
PART = 1 << 18
"""The approximate number of connections per part; each part ends with a whole row."""
_MOST_CONNECTIONS = 1 << 31
_MOST_PARTS = _MOST_CONNECTIONS // PART + 1


class Manifest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The description of a shard to transfer: its digest, its chunks, and each part's digest."""

    shard: int
    digest: bytes
    applied: bytes
    parts: Annotated[list[bytes], msgspec.Meta(max_length=_MOST_PARTS)]
    """The digest of each part's bytes; it shows at once which peer sent a wrong part."""
    connections: int

    def to_bytes(self) -> bytes:
        """Return the canonical encoding of this manifest of a shard."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Manifest":
        """Decode a manifest that `to_bytes` encoded; DamagedError if it is malformed."""
        try:
            found = msgspec.msgpack.decode(data, type=cls)
        except msgspec.MsgspecError as error:
            raise DamagedError(f"invalid manifest of a shard: {error}") from None
        check(
            0 <= found.shard < MOST_SHARDS,
            f"the manifest's shard number is out of range: {found.shard}",
        )
        check(
            0 <= found.connections < _MOST_CONNECTIONS,
            f"the manifest's connections are out of range: {found.connections}",
        )
        most = found.connections // PART + 1
        check(
            len(found.parts) <= most,
            f"a manifest has {len(found.parts)} parts; at most {most} fit its connections",
        )
        return found


class Export:
    """A captured shard, encoded in parts for sending."""

    def __init__(self, held: Content) -> None:
        if len(held.shards) != 1:
            raise UsageError(f"one shard can be sent at a time, not {len(held.shards)}")
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
        """The size of all encoded parts in bytes."""
        return sum(map(len, self._parts))

    def part(self, number: int) -> bytes:
        """Return the part with this number, encoded as a parcel."""
        if not 0 <= number < len(self._parts):
            raise UsageError(f"there is no part {number}, only 0 to {len(self._parts) - 1}")
        return self._parts[number]


class Import:
    """Collects the encoded parts of a shard as they arrive."""

    def __init__(self, manifest: Manifest, limits: Limits) -> None:
        self.manifest = manifest
        self._limits = limits
        self.applied = Applied.received(manifest.applied)
        """The chunks that add up to the received shard."""
        self._parts: dict[int, bytes | memoryview] = {}
        self._left = manifest.connections
        self._alone = ALONE

    @property
    def size(self) -> int:
        """The total size of the parts received so far, in bytes."""
        return sum(map(len, self._parts.values()))

    @property
    def missing(self) -> list[int]:
        """The numbers of the parts that have not been received yet."""
        numbers = range(len(self.manifest.parts))
        return [number for number in numbers if number not in self._parts]

    def take(self, number: int, part: bytes | memoryview) -> None:
        """Add a received part; DamagedError, and no change, if its digest or sizes are wrong.

        Only `content` checks whether the part is a valid parcel.
        """
        parts = self.manifest.parts
        if not 0 <= number < len(parts):
            raise DamagedError(f"there is no part {number}; the shard has {len(parts)}")
        if _digest(part) != parts[number]:
            raise DamagedError(f"part {number} does not match the manifest's digest")
        if number in self._parts:
            return
        sizes = sizes_of(part)
        alone = max(0, sizes.neurons - 2 * sizes.connections)
        check(
            sizes.connections <= self._left,
            f"part {number} has more connections than the manifest leaves",
        )
        check(alone <= self._alone, f"part {number} has too many neurons without connections")
        self._left -= sizes.connections
        self._alone -= alone
        self._parts[number] = part

    def content(self) -> Content:
        """Unpack all parts and return the shard's content.

        DamagedError if the parts do not add up to the shard's digest. Unpacking is slow; it may
        run in any thread.
        """
        if self.missing:
            raise UsageError(f"{len(self.missing)} parts are still missing")
        parts = list(self._parts.values())
        try:
            delta = total([decode(part, self._limits) for part in parts]) if parts else EMPTY
        except OverflowError as error:
            raise DamagedError(f"the sum of a shard's parts is too large: {error}") from None
        shards = np.array([self.manifest.shard], np.uint16)
        held = Content(shards, [self.applied], delta, parts[0] if len(parts) == 1 else b"")
        if held.digest.to_bytes(32, "little") != self.manifest.digest:
            raise DamagedError(
                f"the parts of shard {self.manifest.shard} do not add up to the manifest's digest"
            )
        return held


def cut(delta: Delta) -> list[Delta]:
    """Split a delta by rows into parts of about equal size, whose sum is the delta."""
    if not delta.neurons:
        return []
    first = np.flatnonzero(first_of_runs(delta.row_starts[:-1] // PART)).tolist()
    return [delta.rows(*rows) for rows in pairwise([*first, delta.neurons])]


def _digest(part: bytes | memoryview) -> bytes:
    return hashlib.blake2b(part, digest_size=16).digest()
