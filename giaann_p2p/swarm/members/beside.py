"""Decides which shards a peer holds beside their owners: those that lack owners with standing.

Placement gives shards to all members alike, and a newcomer may promise any capacity. So each peer
also computes a second placement, on the members with standing alone. If a shard has fewer owners
with standing than replicas, owners by the second placement make up the number, and hold it beside
its owners. Newcomers thus serve at once, but each shard also has as many replicas at peers with
standing as possible, whoever joins, vanishes or leaves.

Peers may disagree for a while on which peers have standing, so a shard may have one replica too
many or too few beside its owners. But no peer drops a replica until peers with standing have proved
that they hold its content, too (see `ShardDrop`).
"""

from collections.abc import Mapping

from giaann_p2p.swarm.members.exclusion import Named, placed
from giaann_p2p.swarm.members.placement import Placement
from giaann_p2p.swarm.wire.identity import Peer


def held_beside(
    me: Peer,
    placement: Placement,
    members: Mapping[Peer, int],
    standing: frozenset[Peer],
    named: Named,
) -> frozenset[int]:
    """Return the shards that `me` holds beside their owners by a placement on `members`."""
    apart = {peer: capacity for peer, capacity in members.items() if peer in standing}
    if len(apart) == len(members):  # the common case: nobody is a newcomer
        return frozenset()
    shards = len(placement.owner_matrix)
    among_standing = placed(
        apart, shards, placement.replicas, named, placement.founded, placement.first
    )

    def holds(shard: int) -> bool:
        owners = placement.owners(shard)
        counting = standing.intersection(owners) - among_standing.excluded(shard)
        others = [peer for peer in among_standing.owners(shard) if peer not in owners]
        return me in others[: placement.replicas - len(counting)]

    return frozenset(filter(holds, among_standing.shards_of(me).tolist()))
