"""Voters: the peers whose rows count when the rows of a shard are put to a vote.

The owners of a shard vote, because they get every update, or fetch it within seconds. Owners that
do not announce the shard as ready vote as well; otherwise a single liar that announces it first
would be the only voter. If such an owner does not have the shard yet, it says so. A peer that holds
a shard without owning it may be asked, but does not vote: it gets no more updates, and honestly
falls behind. A liar neither votes nor is asked until its backoff ends.

A majority is more than half of all replicas that a shard should have, even if fewer owners are
known. The reason: a reader that is cut off from most of a swarm forgets the peers that it cannot
reach, and the rest looks like a swarm with few peers.
"""

from giaann_p2p.swarm.members.liar_backoff import LiarBackoff
from giaann_p2p.swarm.members.peers_view import PeersView
from giaann_p2p.swarm.wire.identity import Peer


class Voters:
    """Determines the voters of each shard: its owners, without liars in backoff."""

    def __init__(self, others: PeersView) -> None:
        self.liar_backoff = LiarBackoff()
        self._others = others

    def voters(self, shard: int, now: float) -> list[Peer]:
        """Return the owners of a shard that may vote now."""
        owners = self._others.placement(now).owners(shard)
        return [peer for peer in owners if not self.liar_backoff.holds(peer, now)]

    def replicas(self, now: float) -> int:
        """Return how many owners a shard should have."""
        return self._others.placement(now).replicas

    def ready(self, shard: int, now: float) -> list[Peer]:
        """Return the voters of a shard that announce it as ready."""
        ready = self._others.ready(shard, now)
        return [peer for peer in self.voters(shard, now) if peer in ready]
