"""The records that a node of the DHT keeps, and the rules by which it accepts them.

1. Each record belongs in one place, given by its role and its peer. Only the peer itself can post
   its record, and only in that place. So nobody can fill the places of others, or replay an old
   record.
2. The record with the highest sequence wins. It expires when its lifetime has passed since it, or
   its newest pulse, arrived, by the local clock, so the clocks of peers may differ as far as
   swarm/wire/record.py allows.
3. Where membership is restricted, a record is kept only if its peer may have the role it claims.
4. A place has room for `most` bytes of records of other peers. When it is full, peers that are in
   it may renew their records, and no new peers are admitted. This peer's own record does not count,
   so no stranger can displace it.
"""

from hashlib import sha1

import msgspec

from giaann_p2p.errors import RecordError
from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.pulse import PULSE_BYTES, shown_by
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

MOST_PLACE = 1 << 19
"""The most bytes of the records of one place: a thousand records of 500 bytes."""
KEY_BYTES = 20
"""The length in bytes of a key of the DHT."""
ROLES: tuple[Role, ...] = ("storage", "compute")


class _Held(msgspec.Struct, frozen=True, gc=False):
    data: bytes
    sequence: int
    until: float


class Shelf:
    """The records that this node keeps, by place and peer."""

    def __init__(
        self,
        me: Peer,
        swarm_id: bytes,
        layout: Layout,
        most: int = MOST_PLACE,
        admission: Admission | None = None,
    ) -> None:
        self.refused = 0
        """The number of records that this node refused to keep."""
        self._me, self._swarm_id, self._layout, self._most = me, swarm_id, layout, most
        self._admission = admission
        places = [(role, bucket) for role in ROLES for bucket in range(BUCKETS)]
        self._keys = {place: _key_of(place_of(swarm_id, *place)) for place in places}
        self._places: dict[bytes, dict[Peer, _Held]] = {key: {} for key in self._keys.values()}

    def __repr__(self) -> str:
        count = sum(map(len, self._places.values()))
        size = sum(map(_size, self._places.values()))
        return f"<Shelf: {count:,} records, {size:,} bytes>"

    def keys(self, role: Role) -> list[bytes]:
        """Return the DHT keys of all places of a role."""
        return [self._keys[role, bucket] for bucket in range(BUCKETS)]

    def key(self, role: Role, peer: Peer) -> bytes:
        """Return the DHT key of the place where a peer's record of a role belongs."""
        return self._keys[role, bucket_of(peer)]

    def put(self, key: bytes, data: bytes, peer: Peer, lifetime: float, now: float) -> None:
        """Keep a record that a peer posts; raise RecordError with the reason if it is refused."""
        try:
            self._put(key, data, peer, lifetime, now)
        except RecordError:
            self.refused += 1
            raise

    def get(self, key: bytes, now: float) -> list[bytes]:
        """Return the records of a place that have not expired."""
        place = self._places.get(key, {})
        _clear(place, now)
        return [held.data for held in place.values()]

    def _put(self, key: bytes, data: bytes, peer: Peer, lifetime: float, now: float) -> None:
        place = self._places.get(key)
        if place is None:
            raise RecordError("key: it is not a place of this swarm")
        if not lifetime > 0:
            raise RecordError(f"lifetime: it must be more than 0; it is {lifetime}")
        found = unproven(data, now, self._swarm_id, self._layout, peer)
        if self.key(found.role, found.peer) != key:
            raise RecordError("key: the record belongs in another place")
        _clear(place, now)
        held = place.get(peer)
        if held is not None and data[PULSE_BYTES:] == held.data[PULSE_BYTES:]:
            pulse, known = shown_by(data), shown_by(held.data)
            if pulse.number <= known.number:
                return
            self._check_member(found, now)
            prove_pulse(pulse, known, found)
        else:
            self._check_new(data, found, held, place)
            self._check_member(found, now)
            prove(data, found)
            sets_of(found, self._layout)
        place[peer] = _Held(data, found.sequence, now + min(lifetime, found.lifetime))

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


def _key_of(place: str) -> bytes:
    return sha1(place.encode(), usedforsecurity=False).digest()


def _size(place: dict[Peer, _Held]) -> int:
    return sum(len(held.data) for held in place.values())


def _clear(place: dict[Peer, _Held], now: float) -> None:
    for peer in [peer for peer, held in place.items() if held.until <= now]:
        del place[peer]
