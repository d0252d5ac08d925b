"""The base of simulated processes that hold shards, with what the checks of promises need.

The checks number shards by the newest edition, but a peer may still number them by an earlier one.
Then the checks use the peer's content of the shard's parent.
"""

from abc import abstractmethod

from giaann_p2p.sim.node import Node
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.storage import StoragePeer
from giaann_p2p.swarm.wire.replica import ReplicaState


class Holder(Node):
    """The base of storage peers: what they hold now, or will hold again after a restart."""

    store: Store
    """The store that is open now; each restart opens a new one."""
    left: bool
    """Whether the peer has handed over its shards and left."""
    lost: bool
    """Whether the peer's disk is gone for ever."""

    @property
    @abstractmethod
    def core(self) -> StoragePeer:
        """The real node's decisions now: which shards it holds, and in which state."""

    @abstractmethod
    def divides(self) -> None:
        """React when the store is about to divide its shards."""

    @abstractmethod
    def divided(self) -> None:
        """React when the store has divided its shards."""

    @property
    def keeps(self) -> bool:
        """Whether the peer has its data now, or will have it after a restart."""
        return not (self.left or self.lost)

    def stored(self, shard: int) -> int:
        """Return the number of a shard, or of its parent, in the layout of the peer's store."""
        return shard % self.store.layout.shards

    def state(self, shard: int) -> ReplicaState:
        """Return the state of the peer's replica of a shard, or of the shard's parent."""
        replicas = self.core.replicas
        return replicas.state(shard % replicas.shards)

    def chunks(self, shard: int) -> Applied:
        """Return the chunks of a shard that the peer has in memory."""
        stored = self.stored(shard)
        return self.store.sets([stored]).get(stored, Applied())

    def kept(self, shard: int) -> Applied:
        """Return the chunks of a shard that the peer has in memory or in a cold copy."""
        copy = self.store.cold.copies.get(self.stored(shard))
        return self.chunks(shard) | copy.chunks if copy else self.chunks(shard)

    def is_beside(self, shard: int) -> bool:
        """Return whether the peer holds a shard beside its owners, as some are newcomers to it."""
        placement = self.around.placement(self.now)
        owners = placement.owners(shard % len(placement.owner_matrix))
        return self.peer not in owners and not all(map(self.around.stands, owners))

    def can_give_rest_to(self, other: "Holder", shard: int) -> bool:
        """Return whether the peer has every chunk whose delta `other` does not keep."""
        bare = other.chunks(shard) - other.store.retained_for(other.stored(shard))
        return bare <= self.chunks(shard)
