"""Who is asked for rows, and whose word about them counts.

The owners of a shard have a vote: they get every update, or fetch it within seconds. Also those
that do not say they have it ready: else the one liar that says so first were all there is. Who has
it not yet will tell so when asked. Who still has a shard that is no longer its own may be asked,
but is behind for good, and honestly so. Who was found to lie has no voice and no vote for a while.

A majority is one of all replicas that there should be, also where fewer owners are known. For who
is cut off from most of a swarm forgets them, and cannot tell that from a swarm with few peers.
"""

from collections.abc import Sequence
from typing import Protocol

from giaann_p2p.swarm.identity import Peer
from giaann_p2p.swarm.placement import Placement
from giaann_p2p.swarm.shunned import Shunned


class Others(Protocol):
    """What is known of the storage peers; see `Surroundings`."""

    def ready(self, shard: int, now: float) -> Sequence[Peer]:
        """Return those that are there and say that a shard is ready with them."""
        ...

    def placement(self, now: float) -> Placement:
        """Return who should hold which shard."""
        ...

    def reachable(self, peer: Peer, now: float) -> bool:
        """Tell whether a peer is there and has answered lately."""
        ...

    def suspect(self, peer: Peer, now: float) -> None:
        """A peer did not answer, or not as it should."""
        ...

    def heard(self, peer: Peer) -> None:
        """A peer answered."""
        ...


class Electors:
    """See the module."""

    def __init__(self, others: Others) -> None:
        self.shunned = Shunned()
        self._others = others

    def voters(self, shard: int, now: float) -> list[Peer]:
        """Return those whose word counts."""
        owners = self._others.placement(now).owners(shard)
        return [peer for peer in owners if not self.shunned.holds(peer, now)]

    def replicas(self, now: float) -> int:
        """Return how many owners a shard should have."""
        return self._others.placement(now).replicas

    def ready(self, shard: int, now: float) -> list[Peer]:
        """Return those of them that say they can tell."""
        ready = self._others.ready(shard, now)
        return [peer for peer in self.voters(shard, now) if peer in ready]


def majority(count: int) -> int:
    """Return how many of so many are more than half."""
    return count // 2 + 1
