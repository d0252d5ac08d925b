"""What a swarm's manifest says to those who decide."""

from typing import NamedTuple, Self

from giaann_p2p.swarm.manifest import Manifest


class Rules(NamedTuple):
    """See `swarm.storage.Rules`."""

    shards: int
    replicas: int
    quorum: int

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Return a swarm's rules."""
        return cls(manifest.layout.shards, manifest.replicas, manifest.quorum)
