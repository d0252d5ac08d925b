"""Records: the signed, short-lived announcements of peers in the peer directory.

1. A record is signed by the peer that it describes, so no other peer can write one.
2. It expires `lifetime` seconds, at most MOST_LIFETIME, **after it arrived**, by the receiver's
   clock. So clocks may differ by up to SKEW, and a record dated in the future expires as well.
3. The record with the highest `sequence` wins. Sequences come from the clock, so they grow across
   restarts, too. A replayed old record loses against a newer one, and a peer that knows no newer
   one refuses a record that is older than SKEW plus its lifetime.
4. A record comes with a pulse (see pulse.py). A later pulse makes the record as good as one signed
   when that pulse was due: its lifetime starts again when the pulse arrives, and its age counts
   from the time when the pulse was due.
5. A record states the number of shards that its sets refer to, because its peer may know another
   edition than the reader, which converts the sets (see `sets_of`). So readers find owners while
   the number of shards doubles.
6. Everything is bounded: the text, the addresses, the sets of shards. Cheap checks come first,
   because verifying a signature takes 86 µs.

Every `now` is in seconds since 1970, and must never go back. So a caller reads the clock once at
the start, and adds the monotonic time that has passed since.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Literal

import msgspec
import numpy as np

from giaann_p2p.errors import MessageError, RecordError, UsageError
from giaann_p2p.store.layout import MOST_SHARDS, Shards
from giaann_p2p.swarm.wire.actions import Lost
from giaann_p2p.swarm.wire.identity import (
    PEER_BYTES,
    SIGNATURE_BYTES,
    Identity,
    Peer,
    PeerField,
    name_of,
    to_text,
    verified,
)
from giaann_p2p.swarm.wire.link import MOST_ADDRESS_LENGTH, fault_of
from giaann_p2p.swarm.wire.manifest import PROTOCOL, Rules
from giaann_p2p.swarm.wire.pulse import (
    LINK_BYTES,
    MOST_PULSES,
    NO_ANCHOR,
    PULSE_BYTES,
    PULSE_SECONDS,
    Pulse,
    joined,
    leads,
    split,
)
from giaann_p2p.swarm.wire.shardset import is_doubled, most_bytes, packed, recounted, unpacked
from giaann_p2p.swarm.wire.token import MOST_BYTES as MOST_TOKEN

LIFETIME = 30
"""Seconds for which a record is valid, unless it says otherwise."""
MOST_LIFETIME = 300
"""Maximum number of seconds for which a record may be valid."""
SKEW = 3600
"""Maximum number of seconds by which the clocks of two peers may differ."""
MOST_RECORD_ADDRESSES = 8
MOST_CAPACITY = 1 << 47
"""Highest capacity that a record can announce, and that counts for a share, in bytes (128 TiB)."""
MOST_NAMED = 8
"""Maximum number of peers that a record may accuse of holding wrong shards."""
_LEAST_FOR_NAMES = 1 << 10
MOST_AHEAD = 4
"""Maximum number of shards that a record may count, as a multiple of the reader's number. If a
record counts more, its sets are neither decoded nor checked, because any stranger could send it,
and it would cost a hundred times as much as a usual one. Such a record still names its peer and
edition."""
_LONGEST_FOR = 64
"""A record may be as long as this multiple of the reader's number of shards requires. A newcomer,
which knows only the manifest, learns from longer records that there is an edition. Without a limit,
a stranger's records could take more memory than all others together."""
BUCKETS = 16
"""Number of parts of a swarm's directory: enough for some 16,000 peers, at a thousand in each."""
FRONT_BYTES = PULSE_BYTES + SIGNATURE_BYTES
"""Length of what precedes the body of a record: its pulse and its signature."""
_MOST_BYTES = 4096 + MOST_TOKEN
_KIND = "record"
_NO_SHARDS = b"\0"

Role = Literal["storage", "compute"]
ROLES: tuple[Role, ...] = ("storage", "compute")
PeerState = Literal["joining", "active", "draining", "left"]
Key = tuple[Peer, Role]
"""Key of a record: the peer and its role. A peer with both roles has two records."""

_Word = Annotated[int, msgspec.Meta(ge=0)]  # msgpack's integers end at 64 bits
_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=MOST_CAPACITY)]
_SwarmId = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Link = Annotated[bytes, msgspec.Meta(min_length=LINK_BYTES, max_length=LINK_BYTES)]
_Address = Annotated[str, msgspec.Meta(max_length=MOST_ADDRESS_LENGTH)]


class ForgedError(RecordError):
    """A record that its peer did not sign, or a pulse that its peer never showed."""


class WrongTimeError(RecordError):
    """A record whose date is too far in the past or the future, by the local clock."""

    def __init__(self, announcement: "Announcement", ahead: float) -> None:
        super().__init__(
            f"issued: {abs(ahead):,.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
            " clock; the record is a replay of an old one, or one of the two clocks is wrong"
        )
        self.announcement, self.ahead = announcement, ahead


class Load(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The load of a peer, as its record announces it."""

    queue: _Number = 0
    """Orders that wait for a storage peer's store; chunks that a compute peer is working on."""
    reads: _Number = 0
    """Reads per second at a storage peer; number of prompts that a compute peer is answering."""
    writes: _Number = 0
    """Writes per second at a storage peer; sentences that a compute peer learns per second of
    work."""
    growth: _Number = 0
    """Recent growth of a storage peer's `used`, in bytes per second; tokens that a compute peer
    generates per second of work."""


class Naming(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An accusation: a peer, and the shards of which it holds wrong content."""

    peer: PeerField
    shards: bytes


class Missing(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Shards that a peer remembers but that no peer known to it has whole any more."""

    shards: bytes = _NO_SHARDS
    connections: _Word = 0
    """Number of connections that these shards held when they were last seen whole."""
    seen: _Word = 0
    """Time at which these shards were last seen whole, in seconds since 1970. A compute peer names
    no shards: it reports when a storage peer last served one, if none does now."""


class Announcement(
    msgspec.Struct, frozen=True, kw_only=True, array_like=True, forbid_unknown_fields=True
):
    """The content of a record: what a peer reports about itself."""

    protocol: _Number = PROTOCOL
    swarm_id: _SwarmId
    peer: PeerField
    role: Role
    state: PeerState = "active"
    incarnation: _Word
    """Number that changes with each start of the peer."""
    sequence: _Word
    """Number that grows with each record of the peer (see `next_sequence`)."""
    issued: _Word
    """Time at which the record was made, by the peer's own clock, in seconds since 1970."""
    lifetime: Annotated[int, msgspec.Meta(ge=1, le=MOST_LIFETIME)] = LIFETIME
    capacity: _Bytes = 0
    """Bytes of memory that the peer gives to shards."""
    used: _Bytes = 0
    """Bytes of `capacity` in use; equal to `capacity` while the peer is full."""
    ready: bytes = _NO_SHARDS
    """Shards that the peer serves, encoded by `shardset`."""
    syncing: bytes = _NO_SHARDS
    """Shards that the peer is fetching; it accepts updates for them already."""
    load: Load = Load()
    addresses: Annotated[tuple[_Address, ...], msgspec.Meta(max_length=MOST_RECORD_ADDRESSES)] = ()
    device: Annotated[str, msgspec.Meta(max_length=80)] = ""
    """The hardware that a compute peer computes on."""
    slots: _Number = 0
    """Number of chunks that a compute peer works on at once."""
    token: Annotated[bytes, msgspec.Meta(max_length=MOST_TOKEN)] = b""
    """Membership token of the peer, in a swarm that admits by token."""
    revoked: _Word = 0
    """Number of the newest edition of the founder's list that the peer has."""
    wrong: Annotated[tuple[Naming, ...], msgspec.Meta(max_length=MOST_NAMED)] = ()
    """Accusations of peers that hold wrong content, ascending by accused peer (see `exclusion`)."""
    cold: bytes = _NO_SHARDS
    """Shards that the peer keeps on disk only, in case the peers that hold them now vanish."""
    durable: bool = True
    """Whether the peer's content survives the end of its process; false for a storage peer without
    a disk."""
    missing: Missing = Missing()
    """Shards that the peer remembers but that no peer known to it has whole."""
    anchor: _Link = NO_ANCHOR
    """The end of the chain of the record's pulses."""
    edition: _Word = 0
    """Number of the newest edition of the swarm's rules that the peer has. It is left out of the
    encoding while it is 0, so that releases that know no editions read the record."""
    counted: Annotated[int, msgspec.Meta(ge=0, le=MOST_SHARDS)] = 0
    """The swarm's number of shards that the record's sets of shards refer to; 0 for the manifest's
    number. It is left out of the encoding while it is 0."""

    @property
    def key(self) -> Key:
        """The peer that the record describes, and its role."""
        return self.peer, self.role

    @property
    def shards(self) -> tuple[int, bytes, bytes, tuple[Naming, ...], bytes, bytes]:
        """All sets of shards in the record, encoded: ready, syncing, wrong, cold and missing.

        First comes the number of shards that the sets refer to.
        """
        return self.counted, self.ready, self.syncing, self.wrong, self.cold, self.missing.shards

    @property
    def is_settled(self) -> bool:
        """Whether the peer takes part in the swarm, and fetches no shard."""
        return self.state == "active" and self.syncing == _NO_SHARDS

    def counted_by(self, rules: Rules) -> int:
        """Return the swarm's number of shards that the record's sets refer to."""
        return self.counted or rules.first_shards

    def lived(self, pulse: Pulse) -> int:
        """Return the latest time, by the peer's own clock, at which this pulse proves it alive."""
        return self.issued + PULSE_SECONDS * pulse.number

    def __repr__(self) -> str:
        return f"<{self.role} {name_of(self.peer)} {self.state}, {self.sequence}>"


class Sets(msgspec.Struct, frozen=True):
    """The sets of shards in a record, decoded, as sets of the shards that its reader knows of."""

    ready: Shards
    syncing: Shards
    cold: Shards
    missing: Shards


_NOTHING = Sets(*[np.empty(0, np.uint16) for _ in range(4)])


def signed(identity: Identity, announcement: Announcement) -> bytes:
    """Return a signed record with this content and its first pulse.

    UsageError if other peers would refuse it.
    """
    if announcement.peer != identity.peer:
        raise UsageError(f"{identity} cannot sign for {name_of(announcement.peer)}")
    body = _encoded(announcement)
    try:
        _check(_decoded(body))
    except RecordError as error:
        raise UsageError(f"other peers would refuse this record: {error}") from None
    return joined(Pulse(0, announcement.anchor), identity.sign(_KIND, body) + body)


def signed_as(identity: Identity, announcement: Announcement) -> bytes:
    """Return a signed record without checking its content, so that tests can send invalid ones."""
    body = _encoded(announcement)
    return joined(Pulse(0, announcement.anchor), identity.sign(_KIND, body) + body)


def read(
    data: bytes, now: float, swarm_id: bytes, rules: Rules, owner: Peer | None = None
) -> Announcement:
    """Decode and verify a record; RecordError says what is wrong.

    If `owner` is given, only a record of that peer is accepted.
    """
    announcement = unproven(data, now, swarm_id, rules, owner)
    prove(data, announcement)
    sets_of(announcement, rules)
    return announcement


def unproven(
    data: bytes, now: float, swarm_id: bytes, rules: Rules, owner: Peer | None = None
) -> Announcement:
    """Decode a record, and check everything but its signature, its pulse and its sets of shards.

    These three checks are expensive; RecordError if another one fails.
    """
    shards = min(_LONGEST_FOR * rules.shards, MOST_SHARDS)
    most = _MOST_BYTES + 4 * most_bytes(shards) + _most_named(shards)
    if not FRONT_BYTES < len(data) <= most:
        raise RecordError(f"a record has {FRONT_BYTES + 1} to {most:,} bytes, not {len(data):,}")
    pulse, record = split(data)
    found = _decoded(record[SIGNATURE_BYTES:])
    if found.swarm_id != swarm_id:
        raise RecordError(f"swarm_id: the record belongs to the swarm {to_text(found.swarm_id)}")
    if owner is not None and found.peer != owner:
        raise RecordError(f"peer: the record is of {name_of(found.peer)}, not of {name_of(owner)}")
    if not is_doubled(found.counted_by(rules), rules.first_shards):
        raise RecordError(f"counted: this swarm cannot have {found.counted} shards")
    check_age(found, pulse, now)
    _check(found)
    return found


def check_age(announcement: Announcement, pulse: Pulse, now: float) -> None:
    """Raise RecordError if a record with this pulse is too old, or is dated in the future."""
    if pulse.number > MOST_PULSES:
        raise ForgedError(f"pulse: the last one is number {MOST_PULSES}, not {pulse.number}")
    ahead = announcement.lived(pulse) - now
    if not -SKEW - announcement.lifetime <= ahead <= SKEW:
        raise WrongTimeError(announcement, ahead)


def prove(data: bytes, announcement: Announcement) -> None:
    """Raise RecordError unless a record and its pulse are by the peer that the record describes."""
    pulse, record = split(data)
    signature, body = record[:SIGNATURE_BYTES], record[SIGNATURE_BYTES:]
    if not verified(announcement.peer, _KIND, body, signature):
        raise ForgedError(f"signature: {name_of(announcement.peer)} did not sign this record")
    prove_pulse(pulse, Pulse(0, announcement.anchor), announcement)


def prove_pulse(pulse: Pulse, known: Pulse, announcement: Announcement) -> None:
    """Raise ForgedError unless a pulse is valid; `known` is a valid one with a lower number."""
    if not leads(pulse, known, announcement.anchor, announcement.peer):
        who = name_of(announcement.peer)
        raise ForgedError(f"pulse: number {pulse.number} of this record is not by {who}")


def sets_of(announcement: Announcement, rules: Rules) -> Sets:
    """Decode the sets of shards in a record; RecordError if one is malformed.

    The result has sets of the shards that exist by `rules`. A record may name the children of such
    a shard instead. Its peer then serves the shard if it serves all children, because half a shard
    answers only half of the reads; the same holds for cold copies. It counts as fetching the shard
    if it holds some children but does not serve all: it accepts writes to them, and must be asked
    for their chunks before any chunk counts as lost. The shard is missing if any child is. If a
    record counts far too many shards, its sets are empty.
    """
    count = announcement.counted_by(rules)
    if count > MOST_AHEAD * rules.shards:
        return _NOTHING
    ready = _shards("ready", announcement.ready, count)
    syncing = _shards("syncing", announcement.syncing, count)
    for one in announcement.wrong:
        _shards("wrong", one.shards, count)
    cold = _shards("cold", announcement.cold, count)
    missing = _shards("missing", announcement.missing.shards, count)
    if count == (now := rules.shards):  # the usual case
        return Sets(ready, syncing, cold, missing)
    held = [recounted(some, count, now, whole=False) for some in (ready, syncing)]
    any_held = np.union1d(*held)
    ready, cold = recounted(ready, count, now), recounted(cold, count, now)
    held_in_part = np.setdiff1d(any_held, ready, assume_unique=True)
    return Sets(ready, held_in_part, cold, recounted(missing, count, now, whole=False))


def _shards(field: str, data: bytes, count: int) -> Shards:
    try:
        return unpacked(data, count)
    except MessageError as error:
        raise RecordError(f"{field}: {error}") from None


def accusations_of(announcement: Announcement, rules: Rules) -> tuple[Naming, ...]:
    """Return the accusations in a valid record, with the shards that exist by `rules`.

    A replica of a shard is wrong if the replica of any child is. A record that counts far too many
    shards accuses nobody.
    """
    count, now = announcement.counted_by(rules), rules.shards
    if count == now:  # the usual case
        return announcement.wrong
    if count > MOST_AHEAD * now:
        return ()
    return tuple(
        Naming(
            one.peer, packed(recounted(unpacked(one.shards, count), count, now, whole=False), now)
        )
        for one in announcement.wrong
    )


def namings(wrong: Mapping[Peer, Shards], count: int) -> tuple[Naming, ...]:
    """Return the accusations for a record: as many as fit, those with the most shards first.

    The swarm has `count` shards.
    """
    told, left = list[Naming](), max(_LEAST_FOR_NAMES, most_bytes(count))
    for peer in sorted(wrong, key=lambda peer: (-len(wrong[peer]), peer))[:MOST_NAMED]:
        shards = packed(wrong[peer], count)
        left -= len(shards)
        if left >= 0:
            told.append(Naming(peer, shards))
    return tuple(sorted(told, key=lambda one: one.peer))


def missing_of(lost: Lost, shards: int) -> Missing:
    """Return the field of a record that reports lost shards."""
    return Missing(packed(lost.shards, shards), lost.connections, max(0, int(lost.seen)))


def _most_named(shards: int) -> int:
    """Return the maximum number of bytes that the accusations in a record may take."""
    return MOST_NAMED * (PEER_BYTES + 8) + max(_LEAST_FOR_NAMES, most_bytes(shards))


def next_sequence(now: float, last: int = 0) -> int:
    """Return the sequence of a peer's next record: milliseconds since 1970, but more than `last`.

    Pass as `last` the highest sequence that other peers know, so that it does no harm if the clock
    was set back.
    """
    return max(int(now * 1000), last + 1)


def bucket_of(peer: Peer, buckets: int = BUCKETS) -> int:
    """Return the part of the directory that holds a peer's records."""
    return int.from_bytes(peer[:8], "little") % buckets


def place_of(swarm_id: bytes, role: Role, bucket: int) -> str:
    """Return the name of a part of the directory, from which its DHT key is derived."""
    return f"giaann/{to_text(swarm_id)}/{role}/{bucket}"


def _encoded(announcement: Announcement) -> bytes:
    fields = msgspec.structs.astuple(announcement)
    if not announcement.counted:
        fields = fields[:-1] if announcement.edition else fields[:-2]
    return msgspec.msgpack.encode(fields)


@lru_cache(maxsize=64)  # one process may run several peers, which all read the same records
def _decoded(body: bytes) -> Announcement:
    try:
        return msgspec.msgpack.decode(body, type=Announcement)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(f"this is not a record: {_named(str(error))}") from None


def _named(error: str) -> str:
    """Replace the field numbers in a decoding error by names, because a record has numbers only."""
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
        raise RecordError(f"device: {found.device!r} has unprintable characters")
    named = [one.peer for one in found.wrong]
    if named != sorted({*named}) or found.peer in named:
        raise RecordError("wrong: the accused must be other peers, ascending, each once")
    holds = found.capacity or found.used or found.wrong or found.counted
    sets = found.ready, found.syncing, found.cold, found.missing.shards
    holds = holds or sets != (_NO_SHARDS,) * len(sets)
    if found.role == "compute" and holds:
        raise RecordError("role: the record of a compute peer must not claim capacity or shards")
    if found.role == "storage" and (found.device or found.slots):
        raise RecordError("role: the record of a storage peer must not claim a device or slots")
