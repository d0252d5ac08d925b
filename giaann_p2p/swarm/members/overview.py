"""Overview of a swarm, computed from its peers' records and from which peers answer.

A killed peer stays in the directory for up to half a minute. A peer that does not answer is shown
as silent, and its replicas do not count.
"""

from collections.abc import Collection, Sequence

import msgspec

from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.members import capacity, causes
from giaann_p2p.swarm.members.capacity import Filling
from giaann_p2p.swarm.members.directory import Directory, Health
from giaann_p2p.swarm.members.losses import NONE, Losses, losses
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.record import Announcement, Load, PeerState, Role, sets_of


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A peer in one of its roles."""

    peer: Peer
    role: Role
    state: PeerState
    capacity: int
    used: int
    ready: int
    """Number of shards that the peer serves."""
    syncing: int
    """Number of shards that the peer is fetching."""
    owns: int
    """Number of shards that the peer should hold."""
    load: Load
    device: str
    slots: int
    addresses: tuple[str, ...]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """All live peers, and how well the shards are replicated."""

    peers: list[Seen]
    silent: list[Peer]
    """Live peers that do not answer; empty if no peer was asked."""
    gone: list[Peer]
    """Storage peers that vanished without leaving properly, and may come back."""
    excluded: dict[Peer, list[int]]
    """Excluded peers, each with the shards of which most owners hold different content."""
    full: list[Peer]
    """Full storage peers, among those that own shards or hold them beside the owners."""
    filling: list[Filling]
    """Nearly full storage peers, among those that own shards or hold them beside the owners."""
    closed: int
    """Number of shards that accept no update, because too many of their holders are full."""
    losses: Losses = NONE
    """Content that storage peers remember and no peer has any more."""
    cold: int = 0
    """Number of shards that no peer serves but that have a cold copy: these come back by
    themselves."""
    now: float = 0.0
    """Time of this overview, in seconds since 1970."""
    shards: int
    replicas: int
    health: Health

    @property
    def verdict(self) -> causes.Verdict:
        """The state of the swarm in one word: see `causes`."""
        return causes.verdict(self)

    @property
    def storing(self) -> int:
        """The number of storage peers that are live and not silent."""
        there = (one for one in self.peers if one.peer not in self.silent)
        return sum(one.role == "storage" for one in there)


def overview(
    directory: Directory,
    layout: Layout,
    placement: Placement,
    replicas: int,
    quorum: int,
    now: float,
    silent: Collection[Peer] = (),
) -> Overview:
    """Return an overview of the swarm, computed from the directory and the silent peers."""
    owned = {Peer(peer): len(placement.shards_of(Peer(peer))) for peer in placement.peers}
    live = sorted(directory.live(now), key=lambda said: (said.role, said.peer))
    beside = directory.beyond(placement, now)
    holders = [said for said in live if owned.get(said.peer) or said.peer in beside]
    full = capacity.full(holders)
    return Overview(
        peers=[_seen(said, layout, owned.get(said.peer, 0)) for said in live],
        silent=[peer for peer in dict.fromkeys(said.peer for said in live) if peer in silent],
        gone=[said.peer for said in directory.gone(now)],
        excluded=_excluded(placement, layout),
        full=full,
        filling=capacity.filling(holders),
        closed=capacity.closed(placement, full, quorum, beside),
        losses=losses(directory, layout, now, silent),
        cold=_cold(live, layout, silent),
        now=now,
        shards=layout.shards,
        replicas=replicas,
        health=directory.health(now, placement, replicas, silent),
    )


def _cold(live: Sequence[Announcement], layout: Layout, silent: Collection[Peer]) -> int:
    """Return how many shards have a cold copy but no peer that serves them."""
    sets = [sets_of(said, layout) for said in live if said.peer not in silent]
    cold = {shard for one in sets for shard in one.cold.tolist()}
    return len(cold.difference(*(one.ready.tolist() for one in sets)))


def _excluded(placement: Placement, layout: Layout) -> dict[Peer, list[int]]:
    found: dict[Peer, list[int]] = {}
    for shard in range(layout.shards):
        for peer in placement.excluded(shard):
            found.setdefault(peer, []).append(shard)
    return found


def _seen(said: Announcement, layout: Layout, owned: int) -> Seen:
    sets = sets_of(said, layout)
    return Seen(
        peer=said.peer,
        role=said.role,
        state=said.state,
        capacity=said.capacity,
        used=said.used,
        ready=len(sets.ready),
        syncing=len(sets.syncing),
        owns=owned if said.role == "storage" else 0,
        load=said.load,
        device=said.device,
        slots=said.slots,
        addresses=said.addresses,
    )
