"""What a peer sees around it: the directory, and who should hold what by it."""

from collections.abc import Callable, Mapping
from typing import Self

from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.swarm.admission import Admission
from giaann_p2p.swarm.barring import Named, placed
from giaann_p2p.swarm.directory import Directory
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.manifest import Manifest
from giaann_p2p.swarm.placement import Placement
from giaann_p2p.swarm.record import Announcement

_SPARE = 64
"""Incarnations of peers that the directory has forgotten; more are forgotten, too."""


class Surroundings:
    """The view of one peer; its own record is in it, too."""

    def __init__(
        self,
        me: Peer,
        swarm_id: bytes,
        layout: Layout,
        replicas: int,
        admission: Admission | None = None,
    ) -> None:
        self.me = me
        self.directory = Directory(swarm_id, layout, admission=admission)
        self._layout, self._replicas = layout, replicas
        self._placed: tuple[int, Placement] | None = None
        self._ready_at, self._ready = -1, dict[int, list[Peer]]()
        self._incarnations: dict[Peer, int] = {}
        self._looked_at: float | None = None

    def learn(
        self, record: bytes, now: float, restarted: Callable[[Peer], None]
    ) -> Announcement | None:
        """Take a record in and return what it says that is new; RecordError if it cannot be right.

        `restarted` is told of a peer that began anew: it may have lost what it said it had.
        """
        said = self.directory.merge(record, now)
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
    def of(cls, me: Peer, manifest: Manifest, admission: Admission) -> Self:
        """Return those of a peer of a swarm."""
        return cls(me, manifest.swarm_id, manifest.layout, manifest.replicas, admission)

    def looked(self, now: float) -> None:
        """The directory was looked up: somebody was asked for it, and answered."""
        if self._looked_at is None:
            self._looked_at = now

    def looked_at(self) -> float | None:
        """Return when the directory was looked up first; None if it never was so far."""
        return self._looked_at

    def version(self, now: float) -> int:
        """Return a number that is another one when members or their shards have changed."""
        return self.directory.version(now)

    def members(self, now: float) -> Mapping[Peer, int]:
        """Return the storage peers that are to hold something, with their capacities."""
        return dict(self.directory.members(now))

    def named(self, now: float) -> Named:
        """Return who is said, by whom, to hold something wrong of which shards."""
        return self.directory.named(now)

    def placement(self, now: float) -> Placement:
        """Return who should hold which shard."""
        version = self.directory.version(now)
        if self._placed is None or self._placed[0] != version:
            members, named = self.members(now), self.named(now)
            made = placed(members, self._layout.shards, self._replicas, named)
            self._placed = version, made
        return self._placed[1]

    def workers(self, now: float) -> dict[Peer, int]:
        """Return the compute peers that are there, and how many chunks each works on at a time.

        One that is about to leave takes none any more, but still finishes what it has.
        """
        said = [one for one in self.directory.live(now) if one.role == "compute"]
        return {one.peer: one.slots if one.state == "active" else 0 for one in said}

    def sharing(self, shards: Shards, now: float) -> dict[Peer, list[int]]:
        """Return those that are there and say that they hold any of some shards, and which."""
        return self.directory.sharing(shards, now)

    def ready(self, shard: int, now: float) -> list[Peer]:
        """Return those that are there and say that a shard is ready with them, in no order."""
        version = self.directory.version(now)
        if version != self._ready_at:
            self._ready_at, self._ready = version, {}
        found = self._ready.get(shard)
        if found is None:
            found = self._ready[shard] = self.directory.ready(shard, now)
        return found

    def witnesses(self, shard: int, now: float) -> list[Peer]:
        """Return those that hold a shard, or may come back and hold it."""
        return [*self.directory.claimants(shard, now), *self.directory.syncing(shard, now)]

    def reachable(self, peer: Peer, now: float) -> bool:
        """Tell whether a peer is there and has answered lately."""
        said = self.directory.announcement(peer)
        return said is not None and not self.directory.suspected(peer, now)

    def suspect(self, peer: Peer, now: float) -> None:
        """A peer did not answer, or not as it should."""
        self.directory.suspect(peer, now)

    def heard(self, peer: Peer) -> None:
        """A peer answered."""
        self.directory.heard(peer)

    def records(self, now: float) -> list[bytes]:
        """Return the records that hold now, to be passed on."""
        return self.directory.records(now)
