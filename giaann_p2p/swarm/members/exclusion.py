"""Who is left out of the owners of a shard, for what it holds of it is wrong.

Owners of a shard try each other (see `auditing`), and name in their records who holds something
else than a majority of them. Whom a majority of a shard's replicas name is barred from that shard,
and another peer owns it in its place: everybody sees the same records, and comes to the same. One
name, or many of peers that do not own the shard, bar nobody; nor does a majority of fewer replicas
than there should be. Who is barred from one shard keeps all others.

The next in place is found on a ring of the peers' ids, from a point of the shard's own: so a join
or leave moves hardly any of these replicas.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.layout import Shards
from giaann_p2p.swarm.electors import majority
from giaann_p2p.swarm.identity import PEER_BYTES, Peer
from giaann_p2p.swarm.placement import Barred, Placement

Named = Mapping[Peer, Mapping[Peer, Shards]]
"""By who names them: who holds something wrong, and of which shards."""


def placed(members: Mapping[Peer, int], shards: int, replicas: int, named: Named) -> Placement:
    """Place shards on members, but for those that their owners bar."""
    placement = Placement.of(members, shards, replicas)
    return without(placement, barred(placement, named)) if named else placement


def barred(placement: Placement, named: Named) -> Barred:
    """Return who is barred, by shard."""
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


def without(placement: Placement, barred: Barred) -> Placement:
    """Return a placement in which others own what these are barred from, where there are others."""
    if not barred:
        return placement
    matrix = placement.owner_matrix.copy()
    owned = np.bincount(matrix.ravel(), minlength=len(placement.peers))
    excess = owned - np.ceil(placement.shares).astype(int)
    for shard in sorted(barred):
        out = [at for at in matrix[shard].tolist() if placement.peers[at] in barred[shard]]
        stay = [at for at in matrix[shard].tolist() if at not in out]
        new = _next(placement, shard, {*stay, *out}, excess, len(out))
        excess[out[: len(new)]] -= 1
        excess[new] += 1
        stay += new
        matrix[shard] = (stay + out)[: matrix.shape[1]]
    return Placement(placement.peers, placement.shares, matrix, placement.replicas, barred)


def _next(
    placement: Placement, shard: int, not_these: set[int], excess: Ints, count: int
) -> list[int]:
    """Return the next in place: the nearest of those that have least beyond their shares."""
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
        if len(near) == count:  # as nearly always, after a few
            return near
    return (near + sorted(full, key=excess.__getitem__))[:count]
