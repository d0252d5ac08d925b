"""Exclusion: peers that may not own a shard because their replica of it is wrong.

Owners of a shard audit each other (see `replica_audit`), and accuse in their records each peer
whose rows differ from those of a majority. A peer that a majority of a shard's replicas accuses is
excluded from that shard, and another peer owns it instead. All peers see the same records, so they
compute the same exclusions. The majority is one of all replicas that the shard should have; a
single accusation, or any number of them by peers that do not own the shard, excludes no peer.
Exclusion from one shard does not affect the others.

The substitute is found on a ring of the peers' ids, starting at a point derived from the shard. So
a join or leave moves hardly any of these replicas.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.members.placement import Excluded, Placement
from giaann_p2p.swarm.wire.identity import PEER_BYTES, Peer

Named = Mapping[Peer, Mapping[Peer, Shards]]
"""Accusations: by accuser and accused, the shards of which the accused holds wrong content."""


def placed(members: Mapping[Peer, int], shards: int, replicas: int, named: Named) -> Placement:
    """Place shards on members, with substitutes for the peers excluded from each shard."""
    placement = Placement.of(members, shards, replicas)
    return without(placement, excluded(placement, named)) if named else placement


def excluded(placement: Placement, named: Named) -> Excluded:
    """Return the excluded peers of each shard."""
    votes = Counter[tuple[int, Peer]]()
    for namer, told in named.items():
        own = placement.shards_of(namer)
        for peer, shards in told.items():
            if peer != namer:
                both = np.intersect1d(np.intersect1d(own, shards), placement.shards_of(peer))
                votes.update((shard, peer) for shard in both.tolist())
    found: dict[int, frozenset[Peer]] = {}
    for (shard, peer), count in votes.items():
        if count >= majority(placement.replicas):
            found[shard] = found.get(shard, frozenset()) | {peer}
    return found


def without(placement: Placement, excluded: Excluded) -> Placement:
    """Return a placement in which substitutes replace excluded owners, where there are any."""
    if not excluded:
        return placement
    matrix = placement.owner_matrix.copy()
    owned = np.bincount(matrix.ravel(), minlength=len(placement.peers))
    excess = owned - np.ceil(placement.shares).astype(int)
    for shard in sorted(excluded):
        out = [at for at in matrix[shard].tolist() if placement.peers[at] in excluded[shard]]
        stay = [at for at in matrix[shard].tolist() if at not in out]
        new = _next(placement, shard, {*stay, *out}, excess, len(out))
        excess[out[: len(new)]] -= 1
        excess[new] += 1
        stay += new
        matrix[shard] = (stay + out)[: matrix.shape[1]]
    return Placement(placement.peers, placement.shares, matrix, placement.replicas, excluded)


def _next(
    placement: Placement, shard: int, not_these: set[int], excess: Ints, count: int
) -> list[int]:
    """Return `count` substitutes: the nearest within their shares, then by least excess."""
    peers = placement.peers
    point = hashlib.blake2b(shard.to_bytes(4, "little"), digest_size=PEER_BYTES).digest()
    first = bisect_left(peers, point)
    ring = (at % len(peers) for at in range(first, first + len(peers)))
    others = (at for at in ring if at not in not_these)
    near, full = list[int](), list[int]()
    for at in others:
        if excess[at] > 0:
            full.append(at)
            continue
        near.append(at)
        if len(near) == count:  # the usual case, after a few peers
            return near
    return (near + sorted(full, key=excess.__getitem__))[:count]
