"""Overview of a swarm, computed from its peers' records and from which peers answer.

The record of a killed peer stays live for up to half a minute. So the overview shows a peer that
does not answer as silent, and does not count its replicas.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from giaann_p2p.swarm.members import capacity, causes
from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.members.figures import Figures, Seen, cut_figures
from giaann_p2p.swarm.members.losses import losses
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.record import Announcement, Sets


class Overview(Figures, frozen=True, kw_only=True):
    """A swarm in figures, and its state in one word."""

    @property
    def verdict(self) -> causes.Verdict:
        """The state of the swarm in one word, for example `healthy` (see `causes`)."""
        return causes.verdict(self)


def overview(
    directory: Directory,
    placement: Placement,
    rules: Rules,
    now: float,
    silent: Collection[Peer] = (),
) -> Overview:
    """Compute the overview of a swarm from its directory; `silent` peers did not answer.

    `rules` are the swarm's rules now.
    """
    owned = {Peer(peer): len(placement.shards_of(Peer(peer))) for peer in placement.peers}
    live = sorted(directory.live(now), key=lambda said: (said.role, said.peer))
    beside = directory.beyond(placement, now)
    holders = [said for said in live if owned.get(said.peer) or said.peer in beside]
    full = capacity.full(holders)
    sets = {said.key: directory.sets_of(said) for said in live}
    unserved = _unserved([sets[said.key] for said in live if said.peer not in silent])
    return Overview(
        peers=[_seen(said, sets[said.key], owned.get(said.peer, 0)) for said in live],
        silent=[peer for peer in dict.fromkeys(said.peer for said in live) if peer in silent],
        gone=[said.peer for said in directory.gone(now)],
        excluded=_excluded(placement),
        full=full,
        filling=capacity.filling(holders),
        closed=capacity.closed(placement, full, rules.quorum, beside),
        losses=losses(directory, now, silent),
        cold=len(unserved.cold),
        fetched=len(unserved.syncing),
        now=now,
        shards=directory.shards,
        replicas=rules.replicas,
        edition=rules.edition,
        cut=cut_figures(rules),
        health=directory.health(now, placement, rules.replicas, silent),
    )


class _Unserved(NamedTuple):
    """The shards that no peer serves, but some peer keeps as a cold copy, or is fetching."""

    cold: set[int]
    syncing: set[int]


def _unserved(sets: Sequence[Sets]) -> _Unserved:
    ready = {shard for one in sets for shard in one.ready.tolist()}
    cold = {shard for one in sets for shard in one.cold.tolist()}
    syncing = {shard for one in sets for shard in one.syncing.tolist()}
    return _Unserved(cold - ready, syncing - ready)


def _excluded(placement: Placement) -> dict[Peer, list[int]]:
    found: dict[Peer, list[int]] = {}
    for shard in range(len(placement.owner_matrix)):
        for peer in placement.excluded(shard):
            found.setdefault(peer, []).append(shard)
    return found


def _seen(said: Announcement, sets: Sets, owned: int) -> Seen:
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
