"""A simulated process that holds shards, as the checks of the promises see it."""

from giaann_p2p.sim.node import Node
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.replication.storage import StoragePeer


class Holder(Node):
    """The base of storage peers: what they hold now, and whether they will hold it again."""

    store: Store
    """The store of the present life; a restart opens another one."""
    core: StoragePeer
    """The real node's decisions: which shards it holds, and in which state."""
    left: bool
    """Whether the peer has handed over its shards and left."""
    lost: bool
    """Whether the peer's disk is gone for ever."""

    @property
    def keeps(self) -> bool:
        """Whether the peer's data is there now, or will be after a restart."""
        return not (self.left or self.lost)

    def chunks(self, shard: int) -> Applied:
        """Return the chunks of a shard that the peer has in memory."""
        return self.store.sets([shard]).get(shard, Applied())

    def kept(self, shard: int) -> Applied:
        """Return the chunks of a shard that the peer has in memory or in a cold copy."""
        copy = self.store.cold.copies.get(shard)
        return self.chunks(shard) | copy.chunks if copy else self.chunks(shard)

    def is_beside(self, shard: int) -> bool:
        """Return whether the peer holds a shard beside owners that it takes for newcomers."""
        owners = self.around.placement(self.now).owners(shard)
        return self.peer not in owners and not all(map(self.around.stands, owners))

    def can_give_rest_to(self, other: "Holder", shard: int) -> bool:
        """Return whether the peer has all chunks of which another one keeps no deltas."""
        bare = other.chunks(shard) - other.store.retained_for(shard)
        return bare <= self.chunks(shard)
