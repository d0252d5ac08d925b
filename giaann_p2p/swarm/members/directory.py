"""Who is there and what they hold, by their own signed records: a peer's view of its swarm.

1. A peer's newest record holds, by its sequence, for its lifetime from when it first came; the same
   bytes again prolong nothing. Then the peer is gone, and is remembered for `forget` seconds more:
   it held shards, and may come back with them. `forget` is longer than an old record can be
   sent again, so that none ever passes for a new one.
2. Memory is bounded by `most` records (each has up to 4 KiB, and 3/4 byte a shard of the swarm).
   When they are all live, further peers are turned away until one ends: strangers in any number
   never push out a live peer. Room is made by forgetting who is not: first who holds nothing, then
   whom this directory heard for the shortest time, so that strangers who come in a flood go first.
3. A peer that fails to answer is bypassed. A record that it issued since then ends that, as an
   answer does; one from before, which others still gave away, does not.
4. In a swarm that not everybody may join, only its members are in the directory.
5. `version` changes only if who is a member, or what they claim, does: what was made from it holds
   until then.
"""

from collections.abc import Collection
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from giaann_p2p.errors import RecordError, UsageError
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.swarm.admission import Admission
from giaann_p2p.swarm.claims import Bits, Claims, Mask, has, have
from giaann_p2p.swarm.doubts import Doubts
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.record import (
    MOST_LIFETIME,
    SKEW,
    Announcement,
    Key,
    Load,
    Role,
    Sets,
    prove,
    sets_of,
    unproven,
)

MOST_RECORDS = 1 << 14
FORGET = 24 * 3600.0
_LEAST_FORGET = 2 * SKEW + MOST_LIFETIME
_FEWEST_ROWS = 16


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How well the shards are held."""

    least: int
    """Ready replicas of the shard that has the fewest."""
    mean: float
    under: int
    """Shards with fewer ready replicas than they should have."""
    lost: int
    """Shards that nobody serves."""
    unsettled: int
    """Owners, counted once for each of their shards, that are not ready."""


class Placing(Protocol):
    """Who should own what."""

    @property
    def peers(self) -> tuple[bytes, ...]:
        """All members."""

    @property
    def owner_matrix(self) -> npt.NDArray[np.uint16]:
        """[N, R] each shard's owners, by their places among `peers`."""


class _Entry(msgspec.Struct, frozen=True):
    data: bytes
    announcement: Announcement
    first: float
    """When the peer was first heard of."""
    arrived: float


class Directory:
    """All that is known of a swarm's peers."""

    def __init__(
        self,
        swarm_id: bytes,
        layout: Layout,
        most: int = MOST_RECORDS,
        forget: float = FORGET,
        admission: Admission | None = None,
    ) -> None:
        """Take the swarm; everybody may be in it if nothing is said of admission."""
        if forget < _LEAST_FORGET:
            raise UsageError(f"forget must be {_LEAST_FORGET} s or more; it is {forget}")
        if most < 1:
            raise UsageError(f"a directory needs room for one record; most is {most}")
        self.refused = 0
        """Records that were forged, or otherwise wrong."""
        self.turned_away = 0
        """Records of new peers for which there was no room."""
        self._swarm_id, self._layout, self._most, self._forget = swarm_id, layout, most, forget
        self._admission = admission
        self._claims = Claims(min(_FEWEST_ROWS, most), layout.shards)
        self._rows: dict[Key, int] = {}
        self._entries: dict[int, _Entry] = {}  # by row
        self._known: set[bytes] = set()  # the bytes of the entries
        self._wrong: dict[int, dict[Peer, Shards]] = {}  # by row, of those that name anybody
        self._doubts = Doubts()
        self._version = 0
        self._due = np.inf  # not after the next record ends or is forgotten
        self._members: tuple[int, tuple[tuple[Peer, int], ...]] = (-1, ())

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        live = int(np.count_nonzero(self._claims.live))
        return f"<Directory: {live:,} live records, {len(self) - live:,} others>"

    def merge(self, data: bytes, now: float, owner: Peer | None = None) -> Announcement | None:
        """Take a record in, an owner's if it is given, and return what it says.

        None if it says nothing new, or there is no room; RecordError if it cannot be right.
        """
        self._advance(now)
        if data in self._known:
            return None
        try:
            found = unproven(data, now, self._swarm_id, self._layout, owner)
            held = self.announcement(found.peer, found.role)
            if held is not None and found.sequence <= held.sequence:
                return None
            if held is None and not self._has_room():
                self.turned_away += 1
                return None
            if self._admission is not None:
                self._admission.check(found, now)
            prove(data, found)
            is_same = held is not None and held.shards == found.shards  # as nearly always
            sets = None if is_same else sets_of(found, self._layout)
        except RecordError:
            self.refused += 1
            raise
        self._put(data, found, sets, now)
        return found

    def version(self, now: float) -> int:
        """Return a number that is another one when members or claims have changed."""
        self._advance(now)
        return self._version

    def announcement(self, peer: Peer, role: Role = "storage") -> Announcement | None:
        """Return what a peer, live or gone, said last."""
        row = self._rows.get((peer, role))
        return None if row is None else self._entries[row].announcement

    def load(self, peer: Peer, role: Role = "storage") -> Load | None:
        """Return how busy a peer said it was."""
        found = self.announcement(peer, role)
        return None if found is None else found.load

    def live(self, now: float) -> list[Announcement]:
        """Return the records that hold now, but for those of peers that have left."""
        self._advance(now)
        return self._announcements(self._claims.live)

    def gone(self, now: float) -> list[Announcement]:
        """Return the last records of storage peers that went without leave."""
        self._advance(now)
        return self._announcements(self._claims.holds & ~self._claims.live)

    def records(self, now: float) -> list[bytes]:
        """Return the live records as they came, to be passed on."""
        self._advance(now)
        return [self._entries[row].data for row in np.flatnonzero(self._claims.live).tolist()]

    def addresses(self) -> list[str]:
        """Return where the peers are that are known, those that are live first."""
        order = np.argsort(~self._claims.live, kind="stable").tolist()
        said = [self._entries[row].announcement for row in order if row in self._entries]
        return [address for one in said for address in one.addresses]

    def alive(self, now: float) -> frozenset[Peer]:
        """Return the live peers that are not bypassed."""
        peers = {found.peer for found in self.live(now)}
        return frozenset(peer for peer in peers if not self.suspected(peer, now))

    def members(self, now: float) -> tuple[tuple[Peer, int], ...]:
        """Return the storage peers to place shards on, ascending, with their capacities."""
        version = self.version(now)
        if self._members[0] != version:
            storing = self._announcements(self._claims.live & self._claims.holds)
            staying = [found for found in storing if found.state != "draining" and found.capacity]
            pairs = sorted((found.peer, found.capacity) for found in staying)
            self._members = version, tuple(pairs)
        return self._members[1]

    def named(self, now: float) -> dict[Peer, dict[Peer, Shards]]:
        """Return, of the live peers that name any, who holds something wrong of which shards."""
        self._advance(now)
        live = [row for row in self._wrong if self._claims.live[row]]
        return {self._entries[row].announcement.peer: self._wrong[row] for row in live}

    def ready(self, shard: int, now: float) -> list[Peer]:
        """Return the live peers that serve a shard; those that are bypassed come last."""
        self._advance(now)
        return self._naming(self._ready(shard) & self._claims.live, now)

    def syncing(self, shard: int, now: float) -> list[Peer]:
        """Return the live peers that are fetching a shard, in the same order."""
        self._advance(now)
        return self._naming(self._syncing(shard) & self._claims.live, now)

    def sharing(self, shards: Shards, now: float) -> dict[Peer, list[int]]:
        """Return which of some shards each live peer serves or fetches, of those with any."""
        self._advance(now)
        held = self._claims.held_of(shards)
        return {self._entries[row].announcement.peer: some for row, some in held.items()}

    def claimants(self, shard: int, now: float) -> list[Peer]:
        """Return all who have a shard, also who is gone and may come back with it."""
        self._advance(now)
        return self._naming(self._ready(shard) & self._claims.holds, now)

    def health(
        self, now: float, placement: Placing, replicas: int, silent: Collection[Peer] = ()
    ) -> Health:
        """Return how well the shards are held, of which there should be so many replicas.

        Those of silent peers are none.
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
            unsettled=self._unsettled(placement, among),
        )

    def look_again(self, now: float) -> None:
        """Forget whoever is no member any more."""
        if self._admission is None:
            return
        for row, entry in list(self._entries.items()):
            try:
                self._admission.check(entry.announcement, now)
            except RecordError:
                self._drop(row)

    def suspect(self, peer: Peer, now: float) -> None:
        """Note that a peer did not answer."""
        if self._knows(peer):
            self._doubts.suspect(peer, now)

    def suspected(self, peer: Peer, now: float) -> bool:
        """Tell whether a peer is to be bypassed now."""
        return self._doubts.suspected(peer, now)

    def heard(self, peer: Peer) -> None:
        """Note that a peer answered."""
        self._doubts.end(peer)

    def _put(self, data: bytes, found: Announcement, sets: Sets | None, now: float) -> None:
        """Note a record, and the shards that it names unless they are those of the one before."""
        row, old = self._rows.get(found.key), None
        if row is None:
            row = self._rows[found.key] = self._new_row()
        else:
            old = self._entries[row]
            self._known.remove(old.data)
        entry = _Entry(data, found, old.first if old else now, now)
        self._entries[row] = entry
        self._known.add(data)
        if old:
            self._dispel(old, entry)
        claims = self._claims
        claims.expires[row] = now + found.lifetime
        claims.known_for[row] = now - entry.first
        self._due = min(self._due, now + found.lifetime)
        if sets is None and old and claims.live[row] and _says_the_same(old.announcement, found):
            return  # as nearly always
        before = self._claim(row, old)
        claims.live[row] = found.state != "left"
        claims.holds[row] = found.state != "left" and found.role == "storage"
        if sets is not None:
            claims.claim(row, sets.ready, sets.syncing)
            self._wrong.pop(row, None)
            if sets.wrong:
                self._wrong[row] = sets.wrong
        self._version += self._claim(row, entry) != before

    def _claim(self, row: int, entry: _Entry | None) -> object:
        """Return what `version` stands for; nothing for who claims nothing."""
        if entry is None or not self._claims.holds[row]:
            return None
        found, is_live = entry.announcement, bool(self._claims.live[row])
        return is_live, found.state, found.capacity, found.shards

    def _dispel(self, old: _Entry, new: _Entry) -> None:
        """Trust a peer again if it issued a record since it failed, by its own clock."""
        peer = new.announcement.peer
        since = self._doubts.since(peer)
        if since is not None:
            then = old.announcement.issued + since - old.arrived
            restarted = new.announcement.incarnation != old.announcement.incarnation
            if restarted or new.announcement.issued > then:
                self._doubts.end(peer)

    def _advance(self, now: float) -> None:
        """Let end what has ended."""
        if now < self._due:
            return
        claims = self._claims
        ended = claims.live & (claims.expires <= now)
        claims.live[ended] = False
        self._version += bool((ended & claims.holds).any())
        for row in np.flatnonzero(claims.expires + self._forget <= now).tolist():
            self._drop(row)
        ends = np.where(claims.live, claims.expires, claims.expires + self._forget)
        self._due = float(ends.min())

    def _drop(self, row: int) -> None:
        entry = self._entries.pop(row)
        peer = entry.announcement.peer
        self._known.remove(entry.data)
        del self._rows[entry.announcement.key]
        if not self._knows(peer):
            self._doubts.end(peer)
        self._version += bool(self._claims.holds[row])
        self._claims.clear(row)
        self._wrong.pop(row, None)

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

    def _announcements(self, mask: Mask) -> list[Announcement]:
        return [self._entries[row].announcement for row in np.flatnonzero(mask).tolist()]

    def _ready(self, shard: int) -> Mask:
        return self._has(self._claims.ready, shard)

    def _syncing(self, shard: int) -> Mask:
        return self._has(self._claims.syncing, shard)

    def _has(self, bits: Bits, shard: int) -> Mask:
        if not 0 <= shard < self._layout.shards:
            raise UsageError(f"there are shards 0 to {self._layout.shards - 1}, not {shard}")
        return has(bits, shard)

    def _naming(self, mask: Mask, now: float) -> list[Peer]:
        peers = [found.peer for found in self._announcements(mask)]
        if not len(self._doubts):
            return peers
        return sorted(peers, key=lambda peer: self.suspected(peer, now))

    def _unsettled(self, placement: Placing, among: Mask) -> int:
        owners = placement.owner_matrix
        if not owners.size:
            return 0
        rows = [self._rows.get((Peer(peer), "storage"), -1) for peer in placement.peers]
        row = np.array(rows)[owners]  # [N, R]
        shard = np.arange(len(owners))[:, None]
        settled = (row >= 0) & self._claims.live[row] & have(self._claims.ready, row, shard)
        settled |= (row >= 0) & ~among[row]  # nothing is on its way to those who do not answer
        return int(np.count_nonzero(~settled))


def _says_the_same(old: Announcement, new: Announcement) -> bool:
    """Tell whether nothing changes for others; both are of one role, and name the same shards."""
    return (old.state, old.capacity) == (new.state, new.capacity)
