"""What a peer says of itself in the directory, signed, for a short time.

1. A record is signed by the peer that it is of: nobody else can write one.
2. It lives for `lifetime` seconds, MOST_LIFETIME at most, **from when it came**, by the receiver's
   clock: so clocks may differ by up to SKEW, and a record with a far future still ends.
3. The newest one holds: by `sequence`, which only grows, across restarts too, since it is made from
   the clock. So an old record that is sent again loses against the newer one, and one that is
   older than SKEW and its lifetime is refused by whoever knows no newer one.
4. All is bounded: the text, the addresses, the sets of shards; and the cheap checks come first,
   for a signature takes 86 µs.

`now` is everywhere in seconds since 1970 and never goes back: take the clock once, and add what has
passed since.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal

import msgspec

from giaann_p2p.errors import MessageError, RecordError, UsageError
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.swarm.identity import (
    PEER_BYTES,
    SIGNATURE_BYTES,
    Identity,
    Peer,
    PeerField,
    name_of,
    to_text,
    verified,
)
from giaann_p2p.swarm.link import MOST_ADDRESS_LENGTH, fault_of
from giaann_p2p.swarm.manifest import PROTOCOL
from giaann_p2p.swarm.shardset import most_bytes, packed, unpacked
from giaann_p2p.swarm.token import MOST_BYTES as MOST_TOKEN

LIFETIME = 30
MOST_LIFETIME = 300
SKEW = 3600
"""By how many seconds clocks may differ."""
MOST_RECORD_ADDRESSES = 8
MOST_CAPACITY = 1 << 47
MOST_NAMED = 8
"""Peers whose shards one may call wrong at a time."""
_LEAST_FOR_NAMES = 1 << 10
BUCKETS = 16
"""Parts of a swarm's directory: good for some 16,000 peers, at a thousand a part."""
_MOST_BYTES = 4096 + MOST_TOKEN
_KIND = "record"
_NO_SHARDS = b"\0"

Role = Literal["storage", "compute"]
State = Literal["joining", "active", "draining", "left"]
Key = tuple[Peer, Role]
"""A peer that takes both roles has two records."""

_Word = Annotated[int, msgspec.Meta(ge=0)]  # msgpack ends at 64 bits
_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=MOST_CAPACITY)]
_SwarmId = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Address = Annotated[str, msgspec.Meta(max_length=MOST_ADDRESS_LENGTH)]


class Load(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How busy a peer is."""

    queue: _Number = 0
    reads: _Number = 0
    """A second."""
    writes: _Number = 0
    """A second."""
    p95_ms: _Number = 0
    """What 95 of 100 reads stay below."""


class Naming(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A peer that holds something wrong, and of which shards."""

    peer: PeerField
    shards: bytes


class Announcement(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True
):
    """What a peer says of itself."""

    protocol: _Number = PROTOCOL
    swarm_id: _SwarmId
    peer: PeerField
    role: Role
    state: State = "active"
    incarnation: _Word
    """Another one after each start."""
    sequence: _Word
    """More each time: see `next_sequence`."""
    issued: _Word
    """When, by the peer's own clock, in seconds."""
    lifetime: Annotated[int, msgspec.Meta(ge=1, le=MOST_LIFETIME)] = LIFETIME
    capacity: _Bytes = 0
    """Bytes of memory that the peer gives to shards."""
    used: _Bytes = 0
    ready: bytes = _NO_SHARDS
    """Shards that it serves (see `shardset`)."""
    syncing: bytes = _NO_SHARDS
    """Shards that it is fetching, and takes updates of."""
    load: Load = Load()
    addresses: Annotated[tuple[_Address, ...], msgspec.Meta(max_length=MOST_RECORD_ADDRESSES)] = ()
    device: Annotated[str, msgspec.Meta(max_length=80)] = ""
    """What a compute peer computes on."""
    slots: _Number = 0
    """How many chunks a compute peer works on at a time."""
    token: Annotated[bytes, msgspec.Meta(max_length=MOST_TOKEN)] = b""
    """What lets it be here, in a swarm that not everybody may join."""
    revoked: _Word = 0
    """The number of the newest list of revoked members that it has."""
    wrong: Annotated[tuple[Naming, ...], msgspec.Meta(max_length=MOST_NAMED)] = ()
    """Who holds something wrong of which shards, ascending (see `barring`)."""

    @property
    def key(self) -> Key:
        """Whose record it is, and in which role."""
        return self.peer, self.role

    @property
    def shards(self) -> tuple[bytes, bytes, tuple[Naming, ...]]:
        """Those that it serves, those that it fetches, and those of others that it calls wrong."""
        return self.ready, self.syncing, self.wrong

    def __repr__(self) -> str:
        return f"<{self.role} {name_of(self.peer)} {self.state}, {self.sequence}>"


class Sets(msgspec.Struct, frozen=True):
    """The shards that a record names."""

    ready: Shards
    syncing: Shards
    wrong: dict[Peer, Shards]
    """With others, as far as the peer knows."""


def signed(identity: Identity, announcement: Announcement) -> bytes:
    """Return a record; UsageError where nobody would take it."""
    if announcement.peer != identity.peer:
        raise UsageError(f"{identity} cannot sign for {name_of(announcement.peer)}")
    body = msgspec.msgpack.encode(announcement)
    try:
        _check(_decoded(body))
    except RecordError as error:
        raise UsageError(f"nobody would take this record: {error}") from None
    return identity.sign(_KIND, body) + body


def signed_as(identity: Identity, announcement: Announcement) -> bytes:
    """Sign whatever it says, also what nobody should take: to try whether they do."""
    body = msgspec.msgpack.encode(announcement)
    return identity.sign(_KIND, body) + body


def read(
    data: bytes, now: float, swarm_id: bytes, layout: Layout, owner: Peer | None = None
) -> Announcement:
    """Read a record, an owner's if it is given; RecordError says what is wrong with it."""
    announcement = unproven(data, now, swarm_id, layout, owner)
    prove(data, announcement)
    sets_of(announcement, layout)
    return announcement


def unproven(
    data: bytes, now: float, swarm_id: bytes, layout: Layout, owner: Peer | None = None
) -> Announcement:
    """Read a record, and check what is cheap to check: all but its signature and its shards."""
    most = _MOST_BYTES + 2 * most_bytes(layout.shards) + _most_named(layout.shards)
    if not SIGNATURE_BYTES < len(data) <= most:
        raise RecordError(
            f"a record has {SIGNATURE_BYTES + 1} to {most:,} bytes, not {len(data):,}"
        )
    found = _decoded(data[SIGNATURE_BYTES:])
    if found.swarm_id != swarm_id:
        raise RecordError(f"swarm_id: the record is of the swarm {to_text(found.swarm_id)}")
    if owner is not None and found.peer != owner:
        raise RecordError(f"peer: {name_of(found.peer)}'s record in the place of {name_of(owner)}")
    ahead = found.issued - now
    if not -SKEW - found.lifetime <= ahead <= SKEW:
        raise RecordError(
            f"issued: {abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'} the clock here; "
            "it is an old record sent again, or one of the clocks must be set"
        )
    _check(found)
    return found


def prove(data: bytes, announcement: Announcement) -> None:
    """Raise RecordError unless the peer itself signed the record."""
    signature, body = data[:SIGNATURE_BYTES], data[SIGNATURE_BYTES:]
    if not verified(announcement.peer, _KIND, body, signature):
        raise RecordError(f"signature: {name_of(announcement.peer)} did not sign this record")


def sets_of(announcement: Announcement, layout: Layout) -> Sets:
    """Return the shards that a record names; RecordError if they cannot be."""
    ready = _shards("ready", announcement.ready, layout)
    syncing = _shards("syncing", announcement.syncing, layout)
    wrong = {one.peer: _shards("wrong", one.shards, layout) for one in announcement.wrong}
    return Sets(ready, syncing, wrong)


def _shards(field: str, data: bytes, layout: Layout) -> Shards:
    try:
        return unpacked(data, layout.shards)
    except MessageError as error:
        raise RecordError(f"{field}: {error}") from None


def namings(wrong: Mapping[Peer, Shards], layout: Layout) -> tuple[Naming, ...]:
    """Return how a record calls others' shards wrong: of those with the most, as many as fit."""
    told, left = list[Naming](), max(_LEAST_FOR_NAMES, most_bytes(layout.shards))
    for peer in sorted(wrong, key=lambda peer: (-len(wrong[peer]), peer))[:MOST_NAMED]:
        shards = packed(wrong[peer], layout.shards)
        left -= len(shards)
        if left >= 0:
            told.append(Naming(peer, shards))
    return tuple(sorted(told, key=lambda one: one.peer))


def _most_named(shards: int) -> int:
    """Return how many bytes of a record may call others' shards wrong."""
    return MOST_NAMED * (PEER_BYTES + 8) + max(_LEAST_FOR_NAMES, most_bytes(shards))


def next_sequence(now: float, last: int = 0) -> int:
    """Return the number of the next record: milliseconds, and more than the last one's.

    Give the last one that the others know of, so that a clock that was set back does no harm.
    """
    return max(int(now * 1000), last + 1)


def announce_again(announcement: Announcement, issued: float) -> float:
    """Return when a record that was issued at a time must be followed by the next one."""
    return issued + announcement.lifetime / 3


def bucket_of(peer: Peer, buckets: int = BUCKETS) -> int:
    """Return the part of the directory in which a peer's records stand."""
    return int.from_bytes(peer[:8], "little") % buckets


def place_of(swarm_id: bytes, role: Role, bucket: int) -> str:
    """Return the name of a part of the directory."""
    return f"giaann/{to_text(swarm_id)}/{role}/{bucket}"


@lru_cache(maxsize=64)  # one process may be several peers, who all hear the same
def _decoded(body: bytes) -> Announcement:
    try:
        return msgspec.msgpack.decode(body, type=Announcement)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"no record: {_named(str(error))}") from None


def _named(error: str) -> str:
    """Give the fields of a message their names again: a record carries their numbers only."""
    for number, name in enumerate(Announcement.__struct_fields__):
        error = error.replace(f"`$[{number}]", f"`{name}")
    return error


def _check(found: Announcement) -> None:
    if found.protocol != PROTOCOL:
        raise RecordError(f"protocol: the peer speaks {found.protocol}, this one {PROTOCOL}")
    for address in found.addresses:
        if why := fault_of(address):
            raise RecordError(f"addresses: {address[:80]!r} {why}")
    if not found.device.isprintable():
        raise RecordError(f"device: {found.device!r} cannot be printed")
    named = [one.peer for one in found.wrong]
    if named != sorted({*named}) or found.peer in named:
        raise RecordError("wrong: others in ascending order, each once")
    holds = found.capacity or found.used or found.wrong
    holds = holds or (found.ready, found.syncing) != (_NO_SHARDS,) * 2
    if found.role == "compute" and holds:
        raise RecordError("role: a compute peer has no shards; its storage has another record")
    if found.role == "storage" and (found.device or found.slots):
        raise RecordError("role: a storage peer has no device; its computing has another record")
