"""The rules of a swarm that storage decisions need, taken from its manifest."""

from typing import NamedTuple, Self

from giaann_p2p.swarm.wire.manifest import Manifest


class Rules(NamedTuple):
    """A swarm's shard count, replication factor and quorum, as `swarm.replication` needs them."""

    shards: int
    replicas: int
    quorum: int

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Return the rules of a swarm, as its manifest states them."""
        return cls(manifest.layout.shards, manifest.replicas, manifest.quorum)
