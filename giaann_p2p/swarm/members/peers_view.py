"""A peer's view of the other peers: the directory, and the placement of shards computed from it.

A record expires after its lifetime, so a dead peer disappears from the view. But when the directory
itself cannot be read, no record is renewed, and all peers would seem to be gone. A storage peer
would then believe that it is alone, take all shards, and call them ready, though they are empty. So
records may expire by a separate clock (`set_record_time`), which stops soon after the last
successful look at the directory. The backoff of silent peers always uses the real time.
"""

from collections.abc import Callable, Mapping
from typing import Self

import numpy as np

from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.swarm.members.claims import Mask
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.members.exclusion import Named, excluded, placed
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.members.standing import Standing
from giaann_p2p.swarm.wire.admission import Admission
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Manifest
from giaann_p2p.swarm.wire.record import ROLES, Announcement, sets_of

_SPARE = 64
"""Forgotten peers' incarnations are pruned beyond this number plus twice the directory's peers."""


class PeersView:
    """The view of one peer, its own record included.

    Every method that reads records first replaces its `now` by the records' time.
    """

    def __init__(
        self,
        me: Peer,
        swarm_id: bytes,
        layout: Layout,
        replicas: int,
        admission: Admission | None = None,
        standing: Standing | None = None,
    ) -> None:
        self.me = me
        self.admission = admission
        self.standing = Standing(me) if standing is None else standing
        self.directory = Directory(swarm_id, layout, admission=admission)
        self._layout, self._replicas = layout, replicas
        self._record_time: Callable[[], float] | None = None
        self._placed: tuple[int, Placement] | None = None
        self._ready_at, self._ready = -1, dict[int, list[Peer]]()
        self._beside: tuple[int, Mapping[Peer, Shards]] = -1, {}
        self._kept: tuple[int, Mask, Mask] | None = None
        self._wrong: tuple[int, frozenset[Peer]] | None = None
        self._incarnations: dict[Peer, int] = {}
        self._looked_at: float | None = None
        self._heard_at = 0.0

    def learn(
        self, record: bytes, now: float, restarted: Callable[[Peer], None]
    ) -> Announcement | None:
        """Merge a record; return its announcement if it is new. RecordError if it is invalid.

        `restarted` is called with a peer whose incarnation changed: it may have lost what it
        announced.
        """
        said, self._heard_at = self.directory.merge(record, now), now
        if said is not None:
            self.standing.heard(said.peer, now)
        if said is None or said.role != "storage":
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
        standing: Standing | None = None,
    ) -> Self:
        """Return the view of a peer of the swarm with this manifest."""
        return cls(me, manifest.swarm_id, manifest.layout, manifest.replicas, admission, standing)

    def set_record_time(self, time: Callable[[], float]) -> None:
        """Let records expire by this clock from now on, whatever `now` a caller passes."""
        self._record_time = time

    def looked(self, now: float) -> None:
        """Note that a look at the directory succeeded."""
        if self._looked_at is None:
            self._looked_at = now

    def looked_at(self) -> float | None:
        """Return the time of the first successful look at the directory; None before it."""
        return self._looked_at

    def version(self, now: float) -> int:
        """Return a version number that changes whenever members or their shards change."""
        return self.directory.version(self._at(now))

    def members(self, now: float) -> Mapping[Peer, int]:
        """Return the storage peers that take part in placement, with their capacities in bytes."""
        return dict(self.directory.members(self._at(now)))

    def named(self, now: float) -> Named:
        """Return the accusations by live peers: by accuser and accused, the shards held wrong."""
        return self.directory.named(self._at(now))

    def placement(self, now: float) -> Placement:
        """Return which peers own which shard; the same object until members change."""
        return self._placement(self._at(now))

    def _placement(self, at: float) -> Placement:
        version = self.directory.version(at)
        if self._placed is None or self._placed[0] != version:
            members, named = dict(self.directory.members(at)), self.directory.named(at)
            made = placed(members, self._layout.shards, self._replicas, named)
            self._placed = version, made
        return self._placed[1]

    def beside(self, now: float) -> Mapping[Peer, Shards]:
        """Return the peers that hold shards without owning them, with those shards.

        Such a peer held the shards before the present owners, and keeps them until the owners have
        standing. For each shard, at most as many such peers count as it should have replicas: those
        seen for longest. So strangers with false claims cannot make writers push to more peers than
        that.
        """
        at = self._at(now)
        version = self.directory.version(at)
        if self._beside[0] != version:
            found, before = self._found_beside(at), self._beside[1]
            self._beside = version, before if _are_equal(found, before) else found
        return self._beside[1]

    def _found_beside(self, at: float) -> dict[Peer, Shards]:
        placement = self._placement(at)
        left = np.full(self._layout.shards, self._replicas)
        found: dict[Peer, Shards] = {}
        beyond = self.directory.beyond(placement, at)
        for peer in sorted(beyond, key=lambda peer: (-self.standing.seconds(peer), peer)):
            extra = beyond[peer] & (left > 0)
            if extra.any():
                left -= extra
                found[peer] = np.flatnonzero(extra).astype(np.uint16)
        return found

    def workers(self, now: float) -> dict[Peer, int]:
        """Return the live compute peers, and how many chunks each works on at a time.

        A leaving peer has 0: it takes no more chunks, but finishes those that it has.
        """
        said = [one for one in self.directory.live(self._at(now)) if one.role == "compute"]
        return {one.peer: one.slots if one.state == "active" else 0 for one in said}

    def sharing(self, shards: Shards, now: float) -> dict[Peer, list[int]]:
        """Return the live peers that serve or fetch any of these shards, with those shards."""
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
        """Return the peers that keep a cold copy of a shard."""
        return self.directory.cold(shard, self._at(now))

    def witnesses(self, shard: int, now: float) -> list[Peer]:
        """Return the peers that hold a shard, or may come back with it."""
        at = self._at(now)
        return [*self.directory.claimants(shard, at), *self.directory.syncing(shard, at)]

    def reachable(self, peer: Peer, now: float) -> bool:
        """Return whether a peer is live and has answered recently."""
        said = self.directory.announcement(peer)
        return said is not None and not self.directory.suspected(peer, now)

    def stands(self, peer: Peer) -> bool:
        """Return whether a peer has standing: seen for long enough, or vouched for by its token."""
        return self.standing.has(peer) or self._vouched(peer)

    def may_teach(self, author: Peer) -> bool:
        """Return whether an author is no newcomer: the swarm is closed, or the author has standing.

        In a swarm that admits by token, the founder or a delegate has admitted every author.
        """
        return self.admission is None or not self.admission.is_open or self.stands(author)

    def standing_now(self) -> Callable[[Peer], bool]:
        """Return a function that says which peers have standing now; other threads may call it."""
        book, live = self.standing.copy(), self.directory.live(self._heard_at)
        vouched = frozenset(said.peer for said in live if self._vouched(said.peer))
        return lambda peer: book.has(peer) or peer in vouched

    def _vouched(self, peer: Peer) -> bool:
        """Return whether the token in any of a peer's records vouches for it."""
        said = [self.directory.announcement(peer, role) for role in ROLES]
        return self.admission is not None and any(
            self.admission.vouches(peer, one.token, self._heard_at) for one in said if one
        )

    def keeps(self, peer: Peer) -> bool:
        """Return whether a peer is a keeper: it has standing and a disk, so its acks survive it.

        A peer whose content most owners of a shard report as wrong is no keeper meanwhile.
        """
        said = self.directory.announcement(peer)
        durable = said is not None and said.durable
        return durable and self.stands(peer) and peer not in self._disproved()

    def _disproved(self) -> frozenset[Peer]:
        """Return the peers that most owners of a shard, all of them with standing, report as wrong.

        Reports by newcomers do not count: newcomers that own most of a shard's replicas could
        otherwise accuse the keepers of the shard.
        """
        now = self._heard_at
        version = self.directory.version(now)
        if self._wrong is None or self._wrong[0] != version:
            named = {by: told for by, told in self.named(now).items() if self.stands(by)}
            self._wrong = version, self._barred_by(named, now) if named else frozenset()
        return self._wrong[1]

    def _barred_by(self, named: Named, now: float) -> frozenset[Peer]:
        placement = Placement.of(self.members(now), self._layout.shards, self._replicas)
        return frozenset().union(*excluded(placement, named).values())

    def kept(self, now: float) -> Mask:
        """Return for which shards an update needs a keeper to commit, one flag per shard.

        These are the shards that a live keeper holds, and those that only absent keepers held while
        no live peer with standing does. The result is recomputed when claims change, not when a
        peer gains standing.
        """
        return self._keeping(now)[0]

    def awaited(self, now: float) -> list[Peer]:
        """Return the absent keepers without which some updates cannot commit."""
        away = self._keeping(now)[1]
        if not away.any():  # the common case
            return []
        return [
            said.peer
            for said in self.directory.gone(self._at(now))
            if self.keeps(said.peer) and away[sets_of(said, self._layout).ready].any()
        ]

    def _keeping(self, now: float) -> tuple[Mask, Mask]:
        """Return the shards whose updates need a keeper, and those whose keepers are all absent."""
        at = self._at(now)
        version = self.directory.version(at)
        if self._kept is None or self._kept[0] != version:
            held_by = self.directory.held_by
            kept, standing = held_by(self.keeps, True, at), held_by(self.stands, True, at)
            away = held_by(self.keeps, False, at) & ~standing
            self._kept = version, kept | away, away
        return self._kept[1:]

    def _at(self, now: float) -> float:
        return now if self._record_time is None else self._record_time()

    def suspect(self, peer: Peer, now: float) -> None:
        """Note that a peer did not answer, or answered wrongly."""
        self.directory.suspect(peer, now)

    def heard(self, peer: Peer) -> None:
        """Note that a peer answered."""
        self.directory.heard(peer)

    def records(self, now: float) -> list[bytes]:
        """Return the live records, ready to be passed on."""
        return self.directory.records(now)


def _are_equal(one: Mapping[Peer, Shards], other: Mapping[Peer, Shards]) -> bool:
    if one.keys() != other.keys():
        return False
    return all(np.array_equal(shards, other[peer]) for peer, shards in one.items())
