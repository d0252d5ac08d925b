"""Counts of what shards hold."""

from typing import NamedTuple

import numpy as np

from giaann_p2p.store.state import Captured


class Statistics(NamedTuple):
    """Counts of some shards."""

    columns: int
    """The number of columns; one that is cut into blocks counts once in each of its shards."""
    rows: int
    connections: int
    occurrences: int
    chunks: int
    """The number of chunks; one that several shards have applied counts once in each of them."""
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
