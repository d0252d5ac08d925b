"""A peer's view of the other peers: the directory, and the placement of shards computed from it.

A record expires after its lifetime, so a dead peer disappears from the view. But when the directory
itself cannot be read, no record is renewed, and all peers would seem to be gone. A storage peer
would then believe that it is alone, take all shards, and call them ready, though they are empty. So
records may expire by a separate clock (`set_record_time`), which stops soon after the directory was
last read successfully. The backoff of silent peers always uses the real time.
"""

from collections.abc import Callable, Mapping
from typing import Self

import numpy as np

from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.members.claims import Mask
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.members.exclusion import Named, excluded, placed_by
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.members.standing import Standing
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Manifest, Rules
from giaann_p2p.swarm.wire.record import ROLES, Announcement

_SPARE = 64
"""Incarnations of forgotten peers are pruned once there are this many more incarnations than twice
the number of records in the directory."""
_KEPT = 5.0
"""Seconds after which results that depend on standing are recomputed."""


class PeersView:
    """One peer's view of all peers of its swarm, itself included.

    After `set_record_time`, methods that query records use that clock instead of `now`.
    """

    def __init__(
        self,
        me: Peer,
        swarm_id: bytes,
        rules: Callable[[], Rules],
        admission: Admission | None = None,
        standing: Standing | None = None,
    ) -> None:
        """Begin with an empty view; `rules` returns the rules by the newest known edition."""
        self.me = me
        self.admission = admission
        self.standing = Standing(me) if standing is None else standing
        self.directory = Directory(swarm_id, rules, admission=admission)
        self._rules = rules
        self._record_time: Callable[[], float] | None = None
        self._placed: tuple[int, Placement] | None = None
        self._ready_at, self._ready = -1, dict[int, list[Peer]]()
        self._beside: tuple[int, Mapping[Peer, Shards]] = -1, {}
        self._kept: tuple[int, float, Mask, Mask] | None = None
        self._standing_members: tuple[int, float, frozenset[Peer]] | None = None
        self._wrong: tuple[int, frozenset[Peer]] | None = None
        self._incarnations: dict[Peer, int] = {}
        self._looked_at: float | None = None
        self._heard_at = 0.0

    def learn(
        self, record: bytes, now: float, restarted: Callable[[Peer], None]
    ) -> Announcement | None:
        """Merge a record into the directory; return its announcement if that is new.

        `restarted` is called with a storage peer whose incarnation changed, because that peer may
        have lost what it announced before. RecordError if the record is invalid.
        """
        sign, self._heard_at = self.directory.merge(record, now), now
        if sign is None:
            return None
        said = sign.said
        self.standing.heard(said.peer, now)
        if not sign.is_new:
            return None
        if said.role != "storage":
            return said
        known = self._incarnations.get(said.peer)
        if known is not None and known != said.incarnation:
            restarted(said.peer)
        self._incarnations[said.peer] = said.incarnation
        if len(self._incarnations) > 2 * len(self.directory) + _SPARE:
            there = filter(self.directory.announcement, self._incarnations)
            self._incarnations = {peer: self._incarnations[peer] for peer in there}
        return said

    @classmethod
    def of(
        cls,
        me: Peer,
        manifest: Manifest,
        admission: Admission,
        rules: Callable[[], Rules],
        standing: Standing | None = None,
    ) -> Self:
        """Return the view of a peer of the swarm with this manifest."""
        return cls(me, manifest.swarm_id, rules, admission, standing)

    @property
    def rules(self) -> Rules:
        """The swarm's rules by the newest edition that this peer knows."""
        return self._rules()

    def set_record_time(self, time: Callable[[], float]) -> None:
        """Let records expire by this clock from now on, whatever `now` later calls pass."""
        self._record_time = time

    def looked(self, now: float) -> None:
        """Note that this peer has successfully read the records that other peers published."""
        if self._looked_at is None:
            self._looked_at = now

    def looked_at(self) -> float | None:
        """Return when this peer first read other peers' records successfully; None before that."""
        return self._looked_at

    def version(self, now: float) -> int:
        """Return a number that changes whenever the inputs of the placement change.

        These are the members, the shards that they hold, and the swarm's rules.
        """
        return self._version(self._at(now))

    def members(self, now: float) -> Mapping[Peer, int]:
        """Return the storage peers that take part in placement, with their capacities in bytes."""
        return dict(self.directory.members(self._at(now)))

    def named(self, now: float) -> Named:
        """Return the accusations of wrong content that live peers make, by accuser."""
        return self.directory.named(self._at(now))

    def placement(self, now: float) -> Placement:
        """Return which peers own which shard; the same object until the version changes."""
        return self._placement(self._at(now))

    def _version(self, at: float) -> int:
        return self.directory.version(at) + self.rules.edition  # neither ever gets lower

    def _placement(self, at: float) -> Placement:
        version, rules = self._version(at), self.rules
        if self._placed is None or self._placed[0] != version:
            members, named = dict(self.directory.members(at)), self.directory.named(at)
            self._placed = version, placed_by(rules, members, named)
        return self._placed[1]

    def beside(self, now: float) -> Mapping[Peer, Shards]:
        """Return the peers that hold shards without owning them, with those shards.

        Such a peer holds the shards beside owners that it regards as newcomers (see `held_beside`),
        or is about to hand them over. Per shard, at most as many such peers count as the shard
        should have replicas: the ones that this peer has seen for the longest time. So strangers
        with false claims cannot make writers push to any number of peers.
        """
        at = self._at(now)
        version = self._version(at)
        if self._beside[0] != version:
            found, before = self._found_beside(at), self._beside[1]
            self._beside = version, before if _are_equal(found, before) else found
        return self._beside[1]

    def _found_beside(self, at: float) -> dict[Peer, Shards]:
        placement = self._placement(at)
        left = np.full(self.rules.shards, self.rules.replicas)
        found: dict[Peer, Shards] = {}
        beyond = self.directory.beyond(placement, at)
        for peer in sorted(beyond, key=lambda peer: (-self.standing.seconds(peer), peer)):
            extra = beyond[peer] & (left > 0)
            if extra.any():
                left -= extra
                found[peer] = np.flatnonzero(extra).astype(np.uint16)
        return found

    def workers(self, now: float) -> dict[Peer, int]:
        """Return the live compute peers, each with the number of chunks that it works on at once.

        The number is 0 for a leaving peer, which finishes its chunks but takes no more.
        """
        said = [one for one in self.directory.live(self._at(now)) if one.role == "compute"]
        return {one.peer: one.slots if one.state == "active" else 0 for one in said}

    def sharing(self, shards: Shards, now: float) -> dict[Peer, list[int]]:
        """Return, by live peer, which of these shards it serves or fetches."""
        return self.directory.sharing(shards, self._at(now))

    def ready(self, shard: int, now: float) -> list[Peer]:
        """Return the live peers that announce a shard as ready, in no particular order."""
        at = self._at(now)
        version = self.directory.version(at)
        if version != self._ready_at:
            self._ready_at, self._ready = version, {}
        found = self._ready.get(shard)
        if found is None:
            found = self._ready[shard] = self.directory.ready(shard, at)
        return found

    def cold(self, shard: int, now: float) -> list[Peer]:
        """Return the live peers that keep a cold copy of a shard."""
        return self.directory.cold(shard, self._at(now))

    def witnesses(self, shard: int, now: float) -> list[Peer]:
        """Return the peers that serve or fetch a shard, or are gone and may come back with it."""
        at = self._at(now)
        return [*self.directory.claimants(shard, at), *self.directory.syncing(shard, at)]

    def not_suspected(self, peer: Peer, now: float) -> bool:
        """Return whether a peer is in the directory, and is not in backoff for its silence."""
        said = self.directory.announcement(peer)
        return said is not None and not self.directory.suspected(peer, now)

    def stands(self, peer: Peer) -> bool:
        """Return whether a peer has standing: seen for long enough, or vouched for by its token."""
        return self.standing.has(peer) or self._vouched(peer)

    def may_teach(self, author: Peer) -> bool:
        """Return whether an author of deltas is trusted: it has standing, or a token admitted it.

        In a swarm that admits by token, the founder or a delegate has admitted every author. In the
        first minutes of an open swarm all authors are trusted.
        """
        is_admitted = self.admission is None or not self.admission.is_open
        return is_admitted or self.standing.is_young or self.stands(author)

    def standing_members(self, now: float) -> frozenset[Peer]:
        """Return the storage peers of the placement that have standing.

        The result is recomputed when the members change, and every few seconds, because a peer may
        gain standing.
        """
        at = self._at(now)
        version, before = self.directory.version(at), self._standing_members
        if before is None or before[0] != version or not 0 <= at - before[1] < _KEPT:
            found = frozenset(peer for peer, _ in self.directory.members(at) if self.stands(peer))
            self._standing_members = version, at, found
            return found
        return before[2]

    def standing_now(self) -> Callable[[Peer], bool]:
        """Return a function that any thread may call to ask whether a peer has standing now."""
        book, live = self.standing.copy(), self.directory.live(self._heard_at)
        vouched = frozenset(said.peer for said in live if self._vouched(said.peer))
        return lambda peer: book.has(peer) or peer in vouched

    def _vouched(self, peer: Peer) -> bool:
        """Return whether the token in any of a peer's records gives it standing."""
        said = [self.directory.announcement(peer, role) for role in ROLES]
        return self.admission is not None and any(
            self.admission.vouches(peer, one.token, self._heard_at) for one in said if one
        )

    def keeps(self, peer: Peer) -> bool:
        """Return whether a peer is a keeper: it has standing and a disk.

        A peer does not count as a keeper while most owners of a shard report its replica as wrong.
        """
        said = self.directory.announcement(peer)
        durable = said is not None and said.durable
        return durable and self.stands(peer) and peer not in self._disproved()

    def _disproved(self) -> frozenset[Peer]:
        """Return the peers whose replica of some shard is wrong by the reports of most owners.

        Only reports by peers with standing count. Otherwise newcomers that own most replicas of a
        shard could discredit its keepers.
        """
        now = self._heard_at
        version = self._version(now)
        if self._wrong is None or self._wrong[0] != version:
            named = {by: told for by, told in self.named(now).items() if self.stands(by)}
            self._wrong = version, self._barred_by(named, now) if named else frozenset()
        return self._wrong[1]

    def _barred_by(self, named: Named, now: float) -> frozenset[Peer]:
        placement = placed_by(self.rules, self.members(now), {})
        return frozenset().union(*excluded(placement, named).values())

    def kept(self, now: float) -> Mask:
        """Return the shards whose updates cannot commit without a keeper, one flag per shard.

        A shard is flagged if a live keeper holds it; or if an absent keeper held it, and no live
        peer with standing holds it. The result is recomputed when the peers' claims change, and
        every few seconds, because a peer may gain standing.
        """
        return self._keeping(now)[0]

    def awaited(self, now: float) -> list[Peer]:
        """Return the absent keepers that updates of some shards wait for."""
        away = self._keeping(now)[1]
        if not away.any():  # the common case
            return []
        return [
            said.peer
            for said in self.directory.gone(self._at(now))
            if self.keeps(said.peer) and away[self.directory.sets_of(said).ready].any()
        ]

    def _keeping(self, now: float) -> tuple[Mask, Mask]:
        """Return the shards whose updates need a keeper, and those that wait for an absent one."""
        at = self._at(now)
        version = self.directory.version(at)
        if self._kept is None or self._kept[0] != version or not 0 <= at - self._kept[1] < _KEPT:
            held_by = self.directory.held_by
            kept, standing = held_by(self.keeps, True, at), held_by(self.stands, True, at)
            away = held_by(self.keeps, False, at) & ~standing
            self._kept = version, at, kept | away, away
        return self._kept[2:]

    def _at(self, now: float) -> float:
        return now if self._record_time is None else self._record_time()

    def suspect(self, peer: Peer, now: float) -> None:
        """Note that a peer sent no answer or an invalid one, which starts its backoff."""
        self.directory.suspect(peer, now)

    def heard(self, peer: Peer) -> None:
        """Note that a peer answered, which ends its backoff."""
        self.directory.heard(peer)

    def records(self, now: float) -> list[bytes]:
        """Return the encoded live records by the clock `now`, ready to be passed on."""
        return self.directory.records(now)


def _are_equal(one: Mapping[Peer, Shards], other: Mapping[Peer, Shards]) -> bool:
    if one.keys() != other.keys():
        return False
    return all(np.array_equal(shards, other[peer]) for peer, shards in one.items())
