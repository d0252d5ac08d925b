"""The peer directory: one peer's view of which peers are live and what they hold.

The directory is built from the peers' own signed records.

1. A peer's newest record, by sequence, is valid for its lifetime after it, or its newest pulse,
   first arrived; a replay of the record, with that pulse or an older one, does not prolong it.
   After that the peer is gone (later if many are, see `mass_expiry.py`), but remembered for
   `forget` seconds more, because it held shards and may come back with them. `forget` exceeds the
   time for which an old record can be replayed, so a replay is never mistaken for a new record.
2. Memory is bounded by `most` records, each of up to 4 KiB plus 3 bytes per shard of the swarm. If
   all are live, new peers are turned away until one is gone, so no number of strangers pushes out a
   live peer. Otherwise the directory evicts a peer that is not live: first those that hold nothing,
   then those that sent records for the shortest time. So a flood of strangers is evicted first.
3. A peer that fails to answer is in backoff for a while. An answer ends the backoff, and so does a
   record that the peer issued after the failure, or a pulse that was due after it. Earlier ones,
   which other peers may still pass on, do not.
4. In a swarm that admits by token, the directory contains members only.
5. `version` changes whenever the members or what they claim to hold change, and only then. So
   anything derived from these may be cached until `version` changes.
6. Shards are those by the newest edition that this peer knows. When their number doubles, all
   claims are read anew from the records.
"""

from collections.abc import Callable, Collection

import msgspec
import numpy as np

from giaann_p2p.errors import RecordError, UsageError
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.members.claims import Claims, Mask, SetColumn
from giaann_p2p.swarm.members.entry import Entry, SignOfLife, VainError, unfolded
from giaann_p2p.swarm.members.health import Health, Placing
from giaann_p2p.swarm.members.mass_expiry import give_up, next_due
from giaann_p2p.swarm.members.record_ids import RecordIds
from giaann_p2p.swarm.members.silent_backoff import SilentBackoff
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.patch import base_of, is_patch
from giaann_p2p.swarm.wire.pulse import (
    ID_BYTES,
    Pulse,
    bare,
    bucket_in,
    is_bare,
    is_short,
    joined,
    shown_by,
    split,
)
from giaann_p2p.swarm.wire.record import (
    MOST_LIFETIME,
    SKEW,
    Announcement,
    ForgedError,
    Key,
    Load,
    Naming,
    Role,
    Sets,
    accusations_of,
    check_age,
    prove,
    prove_pulse,
    sets_of,
    unproven,
)

MOST_RECORDS = 1 << 14
"""Maximum number of records in a directory."""
FORGET = 24 * 3600.0
"""Seconds for which a peer is remembered after its record has expired."""
_LEAST_FORGET = 2 * SKEW + MOST_LIFETIME
"""Seconds for which an old record can be replayed: `forget` must not be shorter."""
_FEWEST_ROWS = 16


class Directory:
    """Holds the newest record of each peer and role, live or recently gone."""

    def __init__(
        self,
        swarm_id: bytes,
        rules: Callable[[], Rules],
        most: int = MOST_RECORDS,
        forget: float = FORGET,
        admission: Admission | None = None,
    ) -> None:
        """Create an empty directory of at most `most` records.

        `rules` returns the rules by the newest known edition. A record is kept for `forget` seconds
        after it expires. Without `admission` the directory accepts every peer.
        """
        if forget < _LEAST_FORGET:
            raise UsageError(f"forget must be {_LEAST_FORGET} s or more; it is {forget}")
        if most < 1:
            raise UsageError(f"a directory must have room for a record; most is {most}")
        self.refused = 0
        """Number of records that were invalid, or whose signature or pulse was forged."""
        self.turned_away = 0
        """Number of records of new peers that were rejected because the directory was full."""
        self.strange = 0
        """Number of bare pulses whose record was not known."""
        self.strange_buckets = set[int]()
        """Buckets of short pulses and patches whose record was not known; the code that handles
        them clears the set."""
        self._swarm_id, self._rules, self._most, self._forget = swarm_id, rules, most, forget
        self._admission = admission
        self._claims = Claims(min(_FEWEST_ROWS, most), rules().shards)
        self._rows: dict[Key, int] = {}
        self._entries: dict[int, Entry] = {}  # by row
        self._ids = RecordIds()  # the same rows, by `id` and by `before`
        self._accusers = set[int]()  # rows of the records that accuse a peer
        self._silences = SilentBackoff()
        self._version = 0
        self._due = np.inf  # a time not later than the next expiry, or eviction by age
        self._members: tuple[int, tuple[tuple[Peer, int], ...]] = (-1, ())

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        live = int(np.count_nonzero(self._claims.live))
        return f"<Directory: {live:,} live records, {len(self) - live:,} others>"

    def merge(self, data: bytes, now: float) -> SignOfLife | None:
        """Store a record, or the pulse of a known one, if it is new and valid.

        `data` is a record, a patch, or a bare or short pulse. Returns None if it is not new, if the
        record of a pulse or patch is unknown, or if the directory is full. RecordError if it is
        invalid.
        """
        self._advance(now)
        try:
            whole = self._unfolded(data)
            found = None if whole is None else self._merge(whole, now)
            if whole is not None and found is None and is_patch(data):
                raise ForgedError("patch: it makes no newer record of the one that it changes")
            return found
        except RecordError as error:
            self.refused += not isinstance(error, VainError)
            raise

    def _unfolded(self, data: bytes) -> bytes | None:
        """Expand a patch to a record, or a short pulse to a bare one; None if it is not new."""
        if is_short(data):
            rows = self._ids.rows(data)
        elif is_patch(data):
            row = self._ids.row(base_of(data))
            rows = [] if row is None else [row]
        else:
            return data
        if not rows:
            self.strange_buckets.add(bucket_in(data))
        return unfolded(data, [self._entries[row] for row in rows]) if rows else None

    def _merge(self, data: bytes, now: float) -> SignOfLife | None:
        pulse = bare(data)
        row = self._ids.row(pulse[:ID_BYTES])
        if row is not None:
            return self._prolong(row, pulse, now)
        if not is_bare(data):
            return self._learn(data, now)
        self.strange += 1
        return None

    def _learn(self, data: bytes, now: float) -> SignOfLife | None:
        """Store a record that is not known yet, if it is new and valid."""
        found = unproven(data, now, self._swarm_id, self._rules())
        held = self.announcement(found.peer, found.role)
        if held is not None and found.sequence <= held.sequence:
            return None
        if held is None and not self._has_room():
            self.turned_away += 1
            return None
        if self._admission is not None:
            self._admission.check(found, now)
        prove(data, found)
        is_same = held is not None and held.shards == found.shards  # the usual case
        sets = None if is_same else self.sets_of(found)
        self._put(data, found, sets, now)
        return SignOfLife(found, is_new=True)

    def _prolong(self, row: int, bare_pulse: bytes, now: float) -> SignOfLife | None:
        """Prolong the life of a known record if its bare pulse is new and valid.

        Each read of the board calls this for every peer of the swarm.
        """
        old = self._entries[row]
        found, pulse = old.announcement, shown_by(bare_pulse[ID_BYTES:])
        if bare_pulse[:ID_BYTES] != old.id or pulse.number <= old.pulse.number:
            return None
        check_age(found, pulse, now)
        if self._admission is not None:
            self._admission.check(found, now)
        prove_pulse(pulse, old.pulse, found)
        self._renew(row, old, msgspec.structs.replace(old, pulse=pulse, arrived=now))
        if not self._claims.live[row] and found.state != "left":
            self._claims.live[row] = True
            self._version += bool(self._claims.holds[row])
        return SignOfLife(found, is_new=False)

    def version(self, now: float) -> int:
        """Return a number that changes whenever the members or their claims change."""
        self._advance(now)
        return self._version

    def announcement(self, peer: Peer, role: Role = "storage") -> Announcement | None:
        """Return the latest announcement of a peer, live or gone; None if it is unknown."""
        row = self._rows.get((peer, role))
        return None if row is None else self._entries[row].announcement

    @property
    def shards(self) -> int:
        """The number of shards of the swarm, by the newest edition that this peer knows."""
        return self._rules().shards

    def sets_of(self, said: Announcement) -> Sets:
        """Return the sets of shards in a record; RecordError if one is malformed."""
        return sets_of(said, self._rules())

    def load(self, peer: Peer, role: Role = "storage") -> Load | None:
        """Return the load that a peer announced last; None if the peer is unknown."""
        found = self.announcement(peer, role)
        return None if found is None else found.load

    def live(self, now: float) -> list[Announcement]:
        """Return the announcements of all live peers; a peer that has left is not live."""
        self._advance(now)
        return self._announcements(self._claims.live)

    def overdue(self, role: Role, due: float, now: float) -> list[Peer]:
        """Return the live peers with a valid record whose next sign of life was due by `due`."""
        self._advance(now)
        valid = np.flatnonzero(self._claims.live & (self._claims.expires > now)).tolist()
        late = [self._entries[row] for row in valid if self._entries[row].next_due <= due]
        return [one.announcement.peer for one in late if one.announcement.role == role]

    def gone(self, now: float) -> list[Announcement]:
        """Return the last announcements of storage peers that vanished without leaving properly."""
        self._advance(now)
        return self._announcements(self._claims.holds & ~self._claims.live)

    def records(self, now: float, role: Role | None = None) -> list[bytes]:
        """Return the encoded records of all live peers, or of those of one role.

        They are ready to be passed on, each with the newest pulse.
        """
        self._advance(now)
        live = self._live()
        some = (entry for entry in live if role in (None, entry.announcement.role))
        return [joined(entry.pulse, entry.record) for entry in some]

    def shown(self, now: float) -> list[tuple[Announcement, Pulse]]:
        """Return the announcements of all live peers, each with the newest pulse."""
        self._advance(now)
        return [(entry.announcement, entry.pulse) for entry in self._live()]

    def addresses(self) -> list[str]:
        """Return the addresses of all known peers, live ones first."""
        order = np.argsort(~self._claims.live, kind="stable").tolist()
        said = [self._entries[row].announcement for row in order if row in self._entries]
        return [address for one in said for address in one.addresses]

    def alive(self, now: float) -> frozenset[Peer]:
        """Return the live peers that are not in backoff for failing to answer."""
        peers = {found.peer for found in self.live(now)}
        return frozenset(peer for peer in peers if not self.suspected(peer, now))

    def members(self, now: float) -> tuple[tuple[Peer, int], ...]:
        """Return the storage peers to place shards on, ascending, with capacities in bytes."""
        version = self.version(now)
        if self._members[0] != version:
            storing = self._announcements(self._claims.live & self._claims.holds)
            staying = [found for found in storing if found.state != "draining" and found.capacity]
            pairs = sorted((found.peer, found.capacity) for found in staying)
            self._members = version, tuple(pairs)
        return self._members[1]

    def named(self, now: float) -> dict[Peer, tuple[Naming, ...]]:
        """Return the accusations of wrong content in the records of live peers, by accuser."""
        self._advance(now)
        live = [row for row in self._accusers if self._claims.live[row]]
        said = [self._entries[row].announcement for row in live]
        return {one.peer: accusations_of(one, self._rules()) for one in said}

    def ready(self, shard: int, now: float) -> list[Peer]:
        """Return the live peers that serve a shard; peers in backoff come last."""
        self._advance(now)
        return self._naming(self._has(self._claims.ready, shard) & self._claims.live, now)

    def syncing(self, shard: int, now: float) -> list[Peer]:
        """Return the live peers that are fetching a shard; peers in backoff come last."""
        self._advance(now)
        return self._naming(self._has(self._claims.syncing, shard) & self._claims.live, now)

    def sharing(self, shards: Shards, now: float) -> dict[Peer, list[int]]:
        """Return, by live peer, which of these shards it serves or fetches."""
        self._advance(now)
        held = self._claims.held_of(shards)
        return {self._entries[row].announcement.peer: some for row, some in held.items()}

    def cold(self, shard: int, now: float) -> list[Peer]:
        """Return the live peers that keep a cold copy of a shard; peers in backoff come last."""
        self._advance(now)
        return self._naming(self._has(self._claims.cold, shard) & self._claims.live, now)

    def beyond(self, placement: Placing, now: float) -> dict[Peer, Mask]:
        """Return the active peers that hold shards without owning them.

        Each peer comes with one flag per shard, set for the shards that it holds but does not own.
        """
        self._advance(now)
        found = self._claims.held_beyond(self._owners(placement))
        said = {row: self._entries[row].announcement for row in found}
        return {said[row].peer: some for row, some in found.items() if said[row].state == "active"}

    def held_by(self, among: Callable[[Peer], bool], live: bool, now: float) -> Mask:
        """Return which shards certain storage peers hold or held, one flag per shard.

        `among` returns whether a peer counts. If `live`, only live peers count; otherwise only
        peers that vanished, with what they last held.
        """
        self._advance(now)
        rows = np.flatnonzero(self._claims.holds & (self._claims.live == live))
        chosen = [among(self._entries[row].announcement.peer) for row in rows.tolist()]
        return self._claims.held_by(rows[np.array(chosen, np.bool_)])

    def claimants(self, shard: int, now: float) -> list[Peer]:
        """Return all peers that serve a shard, or are gone and may come back with it."""
        self._advance(now)
        return self._naming(self._has(self._claims.ready, shard) & self._claims.holds, now)

    def health(
        self, now: float, placement: Placing, replicas: int, silent: Collection[Peer] = ()
    ) -> Health:
        """Return how well the shards are replicated; replicas of silent peers do not count.

        `replicas` is the number that each shard should have.
        """
        self._advance(now)
        among = np.ones(len(self._claims), np.bool_)
        rows = [self._rows.get((peer, "storage")) for peer in silent]
        among[[row for row in rows if row is not None]] = False
        counts = self._claims.ready_counts(among)
        return Health(
            least=int(counts.min()),
            mean=float(counts.mean()),
            under=int(np.count_nonzero(counts < replicas)),
            lost=int(np.count_nonzero(counts == 0)),
            unsettled=self._claims.unsettled(self._owners(placement), among),
        )

    def look_again(self, now: float) -> None:
        """Drop the records of peers that admission no longer accepts."""
        if self._admission is None:
            return
        for row, entry in list(self._entries.items()):
            try:
                self._admission.check(entry.announcement, now)
            except RecordError:
                self._drop(row)

    def suspect(self, peer: Peer, now: float) -> None:
        """Note that a peer did not answer, which starts or extends its backoff."""
        if self._knows(peer):
            self._silences.suspect(peer, now)

    def suspected(self, peer: Peer, now: float) -> bool:
        """Return whether a peer is in backoff now, because it did not answer."""
        return self._silences.suspected(peer, now)

    def heard(self, peer: Peer) -> None:
        """Note that a peer answered, which ends its backoff."""
        self._silences.end(peer)

    def _put(self, data: bytes, found: Announcement, sets: Sets | None, now: float) -> None:
        """Store a record; `sets` is None if the peer's previous record named the same shards."""
        row, old = self._rows.get(found.key), None
        if row is None:
            row = self._rows[found.key] = self._new_row()
        else:
            old = self._entries[row]
            self._ids.drop(old.before, found.peer)
        pulse, record = split(data)
        last, first = (old.id, old.first) if old else (b"", now)
        entry = Entry(record, bare(data)[:ID_BYTES], last, pulse, found, first, now)
        self._ids.add(entry.id, found.peer, row)
        self._renew(row, old, entry)
        claims = self._claims
        if sets is None and old and claims.live[row] and _says_the_same(old.announcement, found):
            return  # the usual case
        before = self._claim(row, old)
        claims.live[row] = found.state != "left"
        claims.holds[row] = found.state != "left" and found.role == "storage"
        if sets is not None:
            claims.claim(row, sets.ready, sets.syncing, sets.cold)
            self._accusers.discard(row)
            if found.wrong:
                self._accusers.add(row)
        self._version += self._claim(row, entry) != before

    def _renew(self, row: int, old: Entry | None, entry: Entry) -> None:
        """Store an entry that has just arrived; its lifetime starts again."""
        self._entries[row] = entry
        if old and len(self._silences):
            self._dispel(old, entry)
        expires = entry.arrived + entry.announcement.lifetime
        self._claims.expires[row] = expires
        self._claims.known_for[row] = entry.arrived - entry.first
        self._due = min(self._due, expires)

    def _claim(self, row: int, entry: Entry | None) -> object:
        """Return the part of a record that `version` tracks; None unless it is a storage peer's."""
        if entry is None or not self._claims.holds[row]:
            return None
        found, is_live = entry.announcement, bool(self._claims.live[row])
        return is_live, found.state, found.capacity, found.shards

    def _dispel(self, old: Entry, new: Entry) -> None:
        """End a peer's backoff if it was alive after its failure, by its own clock."""
        peer = new.announcement.peer
        since = self._silences.since(peer)
        if since is not None:
            then = old.lived + since - old.arrived
            restarted = new.announcement.incarnation != old.announcement.incarnation
            if restarted or new.lived > then:
                self._silences.end(peer)

    def _advance(self, now: float) -> None:
        """Expire records, forget those that expired long ago, and adopt a new number of shards."""
        if self._claims.shards != self._rules().shards:
            self._count_anew()
        if now < self._due:
            return
        claims = self._claims
        gone = give_up(claims, now)
        self._version += bool((gone & claims.holds).any())
        for row in np.flatnonzero(claims.expires + self._forget <= now).tolist():
            self._drop(row)
        self._due = next_due(claims, self._forget, now)

    def _count_anew(self) -> None:
        """Divide all claims, and decode again the sets of records that counted more shards.

        Records that counted far too many shards were never decoded; drop those that are malformed.
        """
        rules, before = self._rules(), self._claims.shards
        claims = self._claims = self._claims.divided(rules.shards)
        for row, entry in list(self._entries.items()):
            if entry.announcement.counted_by(rules) > before:
                try:
                    sets = self.sets_of(entry.announcement)
                    claims.claim(row, sets.ready, sets.syncing, sets.cold)
                except RecordError:
                    self._drop(row)
        self._version += 1

    def _drop(self, row: int) -> None:
        entry = self._entries.pop(row)
        peer = entry.announcement.peer
        del self._rows[entry.announcement.key]
        self._ids.drop(entry.id, peer)
        self._ids.drop(entry.before, peer)
        if not self._knows(peer):
            self._silences.end(peer)
        self._version += bool(self._claims.holds[row])
        self._claims.clear(row)
        self._accusers.discard(row)

    def _has_room(self) -> bool:
        return len(self) < self._most or not self._claims.live.all()

    def _new_row(self) -> int:
        if len(self) == self._most:
            self._drop(self._claims.least_known())
        elif len(self) == len(self._claims):
            self._claims.grow(min(2 * len(self), self._most))
        return self._claims.free_row()

    def _knows(self, peer: Peer) -> bool:
        return (peer, "storage") in self._rows or (peer, "compute") in self._rows

    def _live(self) -> list[Entry]:
        return [self._entries[row] for row in np.flatnonzero(self._claims.live).tolist()]

    def _announcements(self, mask: Mask) -> list[Announcement]:
        return [self._entries[row].announcement for row in np.flatnonzero(mask).tolist()]

    def _owners(self, placement: Placing) -> Ints:
        """Return the rows of the owners of each shard; -1 for an unknown peer."""
        rows = [self._rows.get((Peer(peer), "storage"), -1) for peer in placement.peers]
        return np.array([*rows, -1])[placement.owner_matrix]  # [N, R]

    def _has(self, sets: SetColumn, shard: int) -> Mask:
        if not 0 <= shard < self._claims.shards:
            raise UsageError(f"there is no shard {shard}; the last is {self._claims.shards - 1}")
        return sets.has(shard)

    def _naming(self, mask: Mask, now: float) -> list[Peer]:
        peers = [found.peer for found in self._announcements(mask)]
        if not len(self._silences):
            return peers
        return sorted(peers, key=lambda peer: self.suspected(peer, now))


def _says_the_same(old: Announcement, new: Announcement) -> bool:
    """Return whether two records of a peer, with equal shards, also agree in state and capacity.

    If so, `version` does not change.
    """
    return (old.state, old.capacity) == (new.state, new.capacity)
