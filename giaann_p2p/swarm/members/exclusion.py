"""Exclusion: peers that may not own a shard because their replica of it is wrong.

Owners of a shard audit each other (see `replica_audit`), and accuse in their records each peer
whose rows differ from those of a majority. A peer that a majority of a shard's replicas accuses is
excluded from that shard, and another peer owns it instead. All peers see the same records, so they
compute the same exclusions. The majority is more than half of all replicas that the shard should
have. A single accusation is not enough, and accusations by peers that do not own the shard do not
count. Exclusion from one shard does not affect the others.

The substitute is found on a ring of the peers' ids, starting at a point derived from the shard. So
a join or leave hardly ever changes a substitute.
"""

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.swarm.members.majority import majority
from giaann_p2p.swarm.members.placement import Excluded, Placement
from giaann_p2p.swarm.wire.identity import PEER_BYTES, Peer
from giaann_p2p.swarm.wire.manifest import Rules
from giaann_p2p.swarm.wire.record import Naming
from giaann_p2p.swarm.wire.shardset import unpacked

Named = Mapping[Peer, Sequence[Naming]]
"""The accusations of each accuser, in the encoding of its record.

They stay encoded because a hostile record of 1 KB can list shards that take 1 MB when decoded.
"""


def placed(
    members: Mapping[Peer, int],
    shards: int,
    replicas: int,
    named: Named,
    founded: int = 0,
    first: int = 0,
) -> Placement:
    """Place shards on members, with substitutes for the peers that are excluded from a shard."""
    placement = Placement.of(members, shards, replicas, founded, first)
    return without(placement, excluded(placement, named)) if named else placement


def placed_by(rules: Rules, members: Mapping[Peer, int], named: Named) -> Placement:
    """Place shards on members by a swarm's rules, as `placed` does."""
    return placed(
        members, rules.shards, rules.replicas, named, rules.founded, rules.founding_shards
    )


def excluded(placement: Placement, named: Named) -> Excluded:
    """Return the peers that are excluded from each shard, because a majority accuses them."""
    votes = Counter[tuple[int, Peer]]()
    for accuser, accusations in named.items():
        for one in accusations:
            votes.update((shard, one.peer) for shard in _valid(placement, accuser, one))
    found: dict[int, frozenset[Peer]] = {}
    for (shard, peer), count in votes.items():
        if count >= majority(placement.replicas):
            found[shard] = found.get(shard, frozenset()) | {peer}
    return found


def _valid(placement: Placement, accuser: Peer, accusation: Naming) -> list[int]:
    """Return the shards of an accusation that both the accuser and the accused own."""
    if accuser == accusation.peer:
        return []
    own, others = placement.shards_of(accuser), placement.shards_of(accusation.peer)
    both = np.intersect1d(own, others, assume_unique=True)
    if not len(both):
        return []  # decodes nothing for a stranger
    said = unpacked(accusation.shards, len(placement.owner_matrix))
    found: list[int] = np.intersect1d(both, said, assume_unique=True).tolist()
    return found


def without(placement: Placement, excluded: Excluded) -> Placement:
    """Return a placement in which other peers replace excluded owners, as far as there are any."""
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
    return Placement(
        placement.peers,
        placement.shares,
        matrix,
        placement.replicas,
        excluded,
        placement.founded,
        placement.first,
    )


def _next(
    placement: Placement, shard: int, not_these: set[int], excess: Ints, count: int
) -> list[int]:
    """Return `count` substitutes for excluded owners of a shard.

    The nearest peers on the ring that do not exceed their share come first, then the peers that
    exceed it least.
    """
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
