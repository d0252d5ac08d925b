"""How well the shards of a swarm are replicated."""

from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt


class Placing(Protocol):
    """The part of `Placement` that the directory needs."""

    @property
    def peers(self) -> tuple[bytes, ...]:
        """All members of the placement; `owner_matrix` refers to them by index."""

    @property
    def owner_matrix(self) -> npt.NDArray[np.uint16]:
        """Shape [N, R]: each shard's owners, as indices into `peers`."""


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
