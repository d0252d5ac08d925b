"""The records that a node of the DHT keeps, and the rules by which it accepts them.

1. Each record belongs in one place, given by its role and its peer. Only the peer itself can post
   its record, and only in that place. So nobody can fill the places of others, or replay an old
   record.
2. The record with the highest sequence wins. It expires when its lifetime has passed since it, or
   its newest pulse, arrived, by the local clock, so the clocks of peers may differ as far as
   swarm/wire/record.py allows.
3. Where membership is restricted, a record is kept only if its peer may have the role it claims.
4. In a small swarm five to seven nodes keep all places: the keys of places begin alike, so those
   nearest to one are nearest to all, and a look asks two nodes. In a large one each place has nodes
   of its own, because the keys differ in the bits that come next. In swarms that earlier releases
   founded, places lie anywhere, and a look in a swarm of a hundred peers asks thirty nodes.
5. The last byte of a key says what a place is asked for; see `ALL` and the others. It makes no
   difference to which nodes are nearest to the key. A peer posts bare pulses, too, to nodes that
   have its record.
6. A place has room for `most` bytes of records of other peers. When it is full, peers that are in
   it may renew their records, and no new peers are admitted. This peer's own record does not count,
   so no stranger can displace it.
"""

from collections.abc import Callable
from hashlib import sha1
from math import inf

import msgspec
from msgspec import structs

from giaann_p2p.errors import RecordError
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.patch import made
from giaann_p2p.swarm.wire.pulse import ID_BYTES, PULSE_BYTES, bare, batch, is_bare, shown_by
from giaann_p2p.swarm.wire.record import (
    BUCKETS,
    Announcement,
    Role,
    bucket_of,
    place_of,
    prove,
    prove_pulse,
    sets_of,
    unproven,
)

ALL, NOTHING = 0xFF, 0
"""Last bytes of a key that ask for all records, and for none."""
PULSES = 11
"""Last byte of a key that asks for the pulses of all records that were prolonged, as a batch."""
BOTH = 12
"""Least last byte of a key that asks for the news of that many seconds, and for all that releases
without `PULSES` ask for: the whole new records, and bare pulses of those that were prolonged. A
lower one, but `NOTHING` and `PULSES`, asks for new records alone, as patches where the reader has
the record before. Nodes of those releases take every number for seconds of both."""
MOST_PLACE = 1 << 19
"""The most bytes of the records of one place: a thousand records of 500 bytes."""
KEY_BYTES = 20
"""The length in bytes of a key of the DHT."""
ROLES: tuple[Role, ...] = ("storage", "compute")
_ALIKE_BITS = 5
"""The number of first bits in which all keys of places are alike. More: fewer nodes keep all places
of a swarm of hundreds; less: fewer places share a node in a swarm of thousands."""
_PLACE_BITS = (len(ROLES) * BUCKETS - 1).bit_length()


class _Held(msgspec.Struct, frozen=True, gc=False):
    data: bytes
    bare: bytes
    """The bare pulse of the record, as last posted."""
    sequence: int
    until: float
    new: float
    """Time at which the record arrived first."""
    prolonged: float
    """Time at which its last pulse arrived."""
    patch: bytes = b""
    """The record as a patch of the one before, which was kept here; empty if there was none."""
    before: float = inf
    """Time at which the one before arrived first."""

    def told(self, since: float) -> bytes:
        """Return the record for readers that know all that came before a time."""
        return self.patch if self.patch and self.before <= since else self.data


class Shelf:
    """The records that this node keeps, by place and peer."""

    def __init__(
        self,
        me: Peer,
        swarm_id: bytes,
        rules: Callable[[], Rules],
        most: int = MOST_PLACE,
        admission: Admission | None = None,
        *,
        near: bool = True,
    ) -> None:
        """`near`: whether the places lie near each other (see the module)."""
        self.refused = 0
        """The number of records that this node refused to keep."""
        self._me, self._swarm_id, self._rules, self._most = me, swarm_id, rules, most
        self._admission = admission
        self._keys = _keys_of(swarm_id, near=near)
        self._places: dict[bytes, dict[Peer, _Held]] = {key: {} for key in self._keys.values()}

    def __repr__(self) -> str:
        count = sum(map(len, self._places.values()))
        size = sum(map(_size, self._places.values()))
        return f"<Shelf: {count:,} records, {size:,} bytes>"

    def keys(self, role: Role, seconds: int = ALL) -> list[bytes]:
        """Return the DHT keys of all places of a role, for all records or for news."""
        return [news_key(self._keys[role, bucket], seconds) for bucket in range(BUCKETS)]

    def key(self, role: Role, peer: Peer) -> bytes:
        """Return the DHT key of the place where a peer's record of a role belongs."""
        return self._keys[role, bucket_of(peer)]

    def put(self, key: bytes, data: bytes, peer: Peer, lifetime: float, now: float) -> None:
        """Keep a record that a peer posts, or the bare pulse of one that is kept.

        RecordError says why if it is refused.
        """
        try:
            self._put(key, self._whole(key, data, peer, now), peer, lifetime, now)
        except RecordError:
            self.refused += 1
            raise

    def get(self, key: bytes, now: float) -> list[bytes]:
        """Return the unexpired records of a place, or what else the key asks for."""
        place, asked = self._places.get(news_key(key, ALL), {}), key[-1] if key else NOTHING
        _clear(place, now)
        if asked == PULSES:
            bare = [held.bare for held in place.values() if held.prolonged > held.new]
            return [batch(bucket_of(next(iter(place))), bare)] if bare else []
        since, all_held = now - asked, place.values()
        if asked < BOTH:
            return [held.told(since) for held in all_held if held.new > since]
        if asked == ALL:
            return [held.data for held in all_held]
        return [
            held.data if held.new > since else held.bare
            for held in all_held
            if held.prolonged > since
        ]

    def _whole(self, key: bytes, data: bytes, peer: Peer, now: float) -> bytes:
        """Return a record as it is; for a bare pulse, return the kept record with this pulse."""
        if not is_bare(data):
            return data
        held = self._places.get(key, {}).get(peer)
        if held is None or held.until <= now or held.bare[:ID_BYTES] != data[:ID_BYTES]:
            raise RecordError("pulse: its record is not kept here")
        return data[ID_BYTES:] + held.data[PULSE_BYTES:]

    def _put(self, key: bytes, data: bytes, peer: Peer, lifetime: float, now: float) -> None:
        place = self._places.get(key)
        if place is None:
            raise RecordError("key: it is not a place of this swarm")
        if not lifetime > 0:
            raise RecordError(f"lifetime: it must be more than 0; it is {lifetime}")
        found = unproven(data, now, self._swarm_id, self._rules(), peer)
        if self.key(found.role, found.peer) != key:
            raise RecordError("key: the record belongs in another place")
        _clear(place, now)
        held, until = place.get(peer), now + min(lifetime, found.lifetime)
        if held is not None and data[PULSE_BYTES:] == held.data[PULSE_BYTES:]:
            pulse, known = shown_by(data), shown_by(held.data)
            if pulse.number <= known.number:
                return
            self._check_member(found, now)
            prove_pulse(pulse, known, found)
            kept = structs.replace(held, data=data, bare=bare(data))
        else:
            self._check_new(data, found, held, place)
            self._check_member(found, now)
            prove(data, found)
            sets_of(found, self._rules())
            kept = _Held(data, bare(data), found.sequence, until, now, now)
            if held is not None:
                patch = made(bucket_of(peer), held.data, data)
                kept = structs.replace(kept, patch=patch, before=held.new)
        place[peer] = structs.replace(kept, until=until, prolonged=now)

    def _check_new(
        self, data: bytes, found: Announcement, held: _Held | None, place: dict[Peer, _Held]
    ) -> None:
        """Raise RecordError unless a record is newer than the one kept, and has room."""
        if held is not None and found.sequence <= held.sequence:
            raise RecordError(
                f"sequence: {found.sequence} is not above {held.sequence}, which is kept"
            )
        peer = found.peer
        if peer != self._me and self._size_without(peer, place) + len(data) > self._most:
            raise RecordError(f"no room: a place has {self._most:,} bytes for other peers")

    def _check_member(self, found: Announcement, now: float) -> None:
        if self._admission is not None:
            self._admission.check(found, now)

    def _size_without(self, peer: Peer, place: dict[Peer, _Held]) -> int:
        return sum(len(held.data) for by, held in place.items() if by not in (peer, self._me))


def node_key(swarm_id: bytes, peer: Peer) -> bytes:
    """Return a peer's own key in the DHT, which is a hash so that nobody can choose it."""
    return sha1(b"giaann node\0" + swarm_id + peer, usedforsecurity=False).digest()


def news_key(key: bytes, seconds: int) -> bytes:
    """Return the key by which a place is asked for the news of the last seconds, or for all."""
    return key[:-1] + bytes((seconds,))


def _keys_of(swarm_id: bytes, *, near: bool) -> dict[tuple[Role, int], bytes]:
    """Return the key of each place, by which all its records are asked for."""
    places = [(role, bucket) for role in ROLES for bucket in range(BUCKETS)]
    numbers = [_number_of(place_of(swarm_id, *place).encode()) for place in places]
    if near:
        rest = 8 * KEY_BYTES - _ALIKE_BITS - _PLACE_BITS
        first = _number_of(swarm_id) >> (rest + _PLACE_BITS)
        heads = [first << _PLACE_BITS | place for place in range(len(places))]
        numbers = [
            head << rest | number & (1 << rest) - 1
            for head, number in zip(heads, numbers, strict=True)
        ]
    keys = [news_key(number.to_bytes(KEY_BYTES, "big"), ALL) for number in numbers]
    return dict(zip(places, keys, strict=True))


def _number_of(name: bytes) -> int:
    return int.from_bytes(sha1(name, usedforsecurity=False).digest(), "big")


def _size(place: dict[Peer, _Held]) -> int:
    return sum(len(held.data) for held in place.values())


def _clear(place: dict[Peer, _Held], now: float) -> None:
    for peer in [peer for peer, held in place.items() if held.until <= now]:
        del place[peer]
