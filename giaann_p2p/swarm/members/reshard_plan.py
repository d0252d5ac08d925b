"""Estimates the replicas and bytes that a founder's change of the rules would move.

No peer knows the size of every shard. So each owner of a shard is assumed to use equal memory for
each of its shards, and the shard's size is the mean over its owners, by the memory in use that they
announce. The children of a divided shard share its size equally.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from giaann_p2p.swarm.members.overview import Overview
from giaann_p2p.swarm.members.placement import Floats, Placement
from giaann_p2p.swarm.wire.identity import Peer

_FULL = 0.9
"""Share of its capacity above which a plan lists a peer."""


class Filled(NamedTuple):
    """A peer that would have little room left, at the end or for a while."""

    peer: Peer
    share: float
    """The share of its capacity that the peer would use at the end."""
    peak: float
    """The share of its capacity that the peer would use before it has handed over any shard: it
    keeps the shards that it loses until their new owners have them."""

    @property
    def stays(self) -> bool:
        """Whether the peer would still have little room left at the end."""
        return self.share > _FULL


class ShardSizes(NamedTuple):
    """Estimated sizes of a swarm's shards, in bytes of memory."""

    mean: int
    largest: int


class ReshardPlan(NamedTuple):
    """The replicas and bytes that a change of placement would move, and the sizes of shards."""

    gained: int
    """Number of replicas of shards that peers would fetch."""
    nbytes: int
    """Bytes of memory that the further replicas would take at all peers together."""
    filled: Sequence[Filled]
    """The peers that would have little room left, the fullest at the end first."""
    before: ShardSizes
    after: ShardSizes


def plan_of(before: Placement, after: Placement, found: Overview) -> ReshardPlan:
    """Return what a change of placement would move; `found` has what peers use and hold."""
    sizes = _sizes(before, found)
    times = len(after.owner_matrix) // len(sizes)
    then = np.tile(sizes, times) / times  # shard s of N becomes s, s + N and so on
    seen = {one.peer: one for one in found.peers if one.role == "storage"}
    gained, nbytes, filled = 0, 0.0, list[Filled]()
    for peer, moved in before.moves(after).items():
        gained += len(moved.gains)
        more = float(then[moved.gains].sum())
        nbytes += more
        one = seen.get(peer)
        if one is not None and one.capacity and one.used + more > _FULL * one.capacity:
            peak, less = one.used + more, float(then[moved.loses].sum())
            filled.append(Filled(peer, max(0.0, peak - less) / one.capacity, peak / one.capacity))
    filled.sort(key=lambda one: (-one.share, one.peer))
    return ReshardPlan(gained, int(nbytes), filled, _summed_up(sizes), _summed_up(then))


def _summed_up(sizes: Floats) -> ShardSizes:
    return ShardSizes(int(sizes.mean()), int(sizes.max()))


def _sizes(placement: Placement, found: Overview) -> Floats:
    """Return an estimate of each shard's bytes; shape [N]."""
    held = {
        one.peer: one.used / (one.ready + one.syncing)
        for one in found.peers
        if one.role == "storage" and one.ready + one.syncing
    }
    sizes = np.zeros(found.shards)
    for shard in range(found.shards):
        said = [held[peer] for peer in placement.owners(shard) if peer in held]
        sizes[shard] = sum(said) / len(said) if said else 0.0
    return sizes
