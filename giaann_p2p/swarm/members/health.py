"""How well the shards of a swarm are replicated."""

import msgspec


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics on the replicas of a swarm's shards."""

    least: int
    """Number of ready replicas of the shard that has the fewest."""
    mean: float
    """Mean number of ready replicas per shard."""
    under: int
    """Number of shards with fewer ready replicas than they should have."""
    lost: int
    """Number of shards that no peer serves."""
    unsettled: int
    """Number of replicas that owners should serve but do not serve yet."""
