"""Turns what is known of a swarm's peers into what the gateway shows."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from giaann_p2p.gateway.releases import Origin
from giaann_p2p.gateway.views import PeersNow, ShownLoad, ShownPeer
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.members.figures import Seen
from giaann_p2p.swarm.members.overview import Overview
from giaann_p2p.swarm.wire.identity import Peer, name_of
from giaann_p2p.swarm.wire.record import Announcement, Key, Role

_Run = tuple[Peer, Role, int]
"""A run of a peer in a role: its incarnation is another one after a restart."""


class Since:
    """Remembers when this process first saw each run of a peer."""

    def __init__(self) -> None:
        self._first: dict[_Run, int] = {}

    def look(self, live: Iterable[Announcement], now: float) -> dict[Key, int]:
        """Return when each live peer was first seen; forget the runs that have ended."""
        runs = [(said.peer, said.role, said.incarnation) for said in live]
        self._first = {run: self._first.get(run, int(now)) for run in runs}
        return {(peer, role): first for (peer, role, _), first in self._first.items()}


def peers_now(
    found: Overview,
    directory: Directory,
    since: Since,
    origins: Mapping[Key, Origin] = MappingProxyType({}),
) -> PeersNow:
    """Return the peers of an overview, and who holds each shard.

    `origins`: the answers of the peers that were asked for release and start time.
    """
    first = since.look(directory.live(found.now), found.now)
    silent, now = set(found.silent), int(found.now)
    peers = []
    for one in found.peers:
        key = one.peer, one.role
        origin = origins.get(key) or Origin("", first.get(key, now))
        peers.append(_shown(one, origin, one.peer in silent))
    return PeersNow(peers=peers, shards=_holders(directory, found.now, silent))


def _shown(one: Seen, origin: Origin, silent: bool) -> ShownPeer:
    stores = one.role == "storage"
    load = ShownLoad(
        queue=one.load.queue, reads=one.load.reads, writes=one.load.writes, growth=one.load.growth
    )
    return ShownPeer(
        name=name_of(one.peer),
        role=one.role,
        state=one.state,
        room=max(0, one.capacity - one.used) if stores else None,
        capacity=one.capacity,
        used=one.used,
        ready=one.ready,
        syncing=one.syncing,
        owns=one.owns,
        load=load,
        reads_per_s=one.load.reads if stores else 0,
        writes_per_s=one.load.writes if stores else 0,
        version=origin.version or None,
        since=origin.began,
        silent=silent,
        device=one.device,
        slots=one.slots,
    )


def _holders(
    directory: Directory, now: float, silent: Collection[Peer]
) -> list[list[tuple[str, str]]]:
    """Return for each shard the peers that hold it; those that do not answer are left out."""
    shards: list[list[tuple[str, str]]] = [[] for _ in range(directory.shards)]
    for said in sorted(directory.live(now), key=lambda said: said.peer):
        if said.peer in silent:
            continue
        sets = directory.sets_of(said)
        for state, held in (("ready", sets.ready), ("syncing", sets.syncing), ("cold", sets.cold)):
            for shard in held.tolist():
                shards[shard].append((name_of(said.peer), state))
    return shards
