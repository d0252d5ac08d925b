"""A swarm at a glance, from what its peers say of themselves, and whether they answer.

A peer that was killed is in the directory for half a minute more. Who does not answer is shown as
silent, and what it holds does not count.
"""

from collections.abc import Collection
from typing import Literal

import msgspec

from giaann_p2p.store.layout import Layout
from giaann_p2p.swarm.directory import Directory, Health
from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.placement import Placement
from giaann_p2p.swarm.record import Announcement, Load, Role, State, sets_of


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A peer in one of its roles."""

    peer: Peer
    role: Role
    state: State
    capacity: int
    used: int
    ready: int
    """Shards that it serves."""
    syncing: int
    """Shards that it is fetching."""
    owns: int
    """Shards that it should hold."""
    load: Load
    device: str
    slots: int
    addresses: tuple[str, ...]


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """All peers that are there, and how well they hold the shards."""

    peers: list[Seen]
    silent: list[Peer]
    """Of these, who does not answer; nobody where nobody was asked."""
    gone: list[Peer]
    """Storage peers that went without leave, and may come back."""
    barred: dict[Peer, list[int]]
    """Who does not own some shards any more, for a majority of their owners hold something else."""
    shards: int
    replicas: int
    health: Health

    @property
    def verdict(self) -> Literal["healthy", "degraded", "lost"]:
        """All shards have all their replicas; some lack some; some are served by nobody."""
        if self.health.lost:
            return "lost"
        return "degraded" if self.health.under or self.health.unsettled else "healthy"


def overview(
    directory: Directory,
    layout: Layout,
    placement: Placement,
    replicas: int,
    now: float,
    silent: Collection[Peer] = (),
) -> Overview:
    """Look at all that is known of a swarm now."""
    owned = {Peer(peer): len(placement.shards_of(Peer(peer))) for peer in placement.peers}
    live = sorted(directory.live(now), key=lambda said: (said.role, said.peer))
    return Overview(
        peers=[_seen(said, layout, owned.get(said.peer, 0)) for said in live],
        silent=[peer for peer in dict.fromkeys(said.peer for said in live) if peer in silent],
        gone=[said.peer for said in directory.gone(now)],
        barred=_barred(placement, layout),
        shards=layout.shards,
        replicas=replicas,
        health=directory.health(now, placement, replicas, silent),
    )


def _barred(placement: Placement, layout: Layout) -> dict[Peer, list[int]]:
    found: dict[Peer, list[int]] = {}
    for shard in range(layout.shards):
        for peer in placement.barred(shard):
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
