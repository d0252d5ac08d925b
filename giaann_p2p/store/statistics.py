"""What shards hold, in numbers."""

from typing import NamedTuple

import numpy as np

from giaann_p2p.store.state import Captured


class Statistics(NamedTuple):
    """Counts of some shards."""

    columns: int
    """A column that is cut into blocks counts once in each shard."""
    rows: int
    connections: int
    occurrences: int
    chunks: int
    """One that several shards took in counts once in each."""
    nbytes: int


def statistics(captured: Captured) -> Statistics:
    """Count what captured shards hold."""
    shards, neurons = captured.shards, captured.columns.neurons
    return Statistics(
        sum(len(np.unique(neurons.concept[shard.occurring])) for shard in shards),
        sum(len(shard.occurring) for shard in shards),
        sum(shard.connections for shard in shards),
        sum(int(shard.count.sum()) for shard in shards),
        sum(map(len, captured.applied)),
        sum(shard.nbytes for shard in shards),
    )
