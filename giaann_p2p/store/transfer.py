"""A shard on its way from one store to another: in parts, each checked, in any order, resumable.

The sender captures the shard; its `Manifest` says how many parts there are, and the digest of their
sum. The receiver asks for the parts that it lacks, from whomever has the same manifest. It has each
checked by its digest when it comes, keeps the few bytes that came, and unpacks them all at once,
where nobody waits: then it is seen whether they add up to what was promised.
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
"""Neurons of a shard beyond two to a connection: each is one end of a connection, or both, but for
a few words that were always the last ones. A few bytes may stand for any number of others."""
PART = 1 << 18
"""Connections from which on the next row begins another part."""


class Manifest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What is to be sent."""

    shard: int
    digest: bytes
    applied: bytes
    parts: list[bytes]
    """The digest of each part's bytes: who sends a wrong one is known at once."""
    connections: int

    def to_bytes(self) -> bytes:
        """Return the one encoding of this manifest."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> "Manifest":
        """Read what `to_bytes` wrote."""
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
    """A shard as it was when it was captured, to be sent."""

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
        """How many bytes all parts have."""
        return sum(map(len, self._parts))

    def part(self, number: int) -> bytes:
        """Return a part, a parcel."""
        if not 0 <= number < len(self._parts):
            raise UsageError(f"there are parts 0 to {len(self._parts) - 1}, not {number}")
        return self._parts[number]


class Import:
    """Takes in the parts of a shard, as bytes."""

    def __init__(self, manifest: Manifest, limits: Limits) -> None:
        self.manifest = manifest
        self._limits = limits
        self.applied = Applied.received(manifest.applied)
        """The chunks that it comes from."""
        self._parts: dict[int, bytes | memoryview] = {}
        self._left = manifest.connections
        self._alone = ALONE

    @property
    def size(self) -> int:
        """How many bytes came."""
        return sum(map(len, self._parts.values()))

    @property
    def missing(self) -> list[int]:
        """The numbers of the parts that are still to come."""
        numbers = range(len(self.manifest.parts))
        return [number for number in numbers if number not in self._parts]

    def take(self, number: int, part: bytes | memoryview) -> None:
        """Take a part in; DamagedError if it is not what was sent, and nothing has changed.

        That is what its sender had it be; if it is a parcel at all, `content` will tell.
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
        """Return what the shard holds; DamagedError if the parts do not add up to it.

        This takes its time, and any thread may do it.
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
    """Cut by rows into parts of about one size; they add up to the whole."""
    if not delta.neurons:
        return []
    first = np.flatnonzero(first_of_runs(delta.row_starts[:-1] // PART)).tolist()
    return [delta.rows(*rows) for rows in pairwise([*first, delta.neurons])]


def _digest(part: bytes | memoryview) -> bytes:
    return hashlib.blake2b(part, digest_size=16).digest()
