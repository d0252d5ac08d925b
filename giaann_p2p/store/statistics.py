"""Counts the columns, rows, connections and chunks that some shards hold."""

from typing import NamedTuple

import numpy as np

from giaann_p2p.store.state import Captured


class Statistics(NamedTuple):
    """What some shards hold in total."""

    columns: int
    """The number of columns; a column that is cut into blocks counts once in each of its shards."""
    rows: int
    connections: int
    occurrences: int
    chunks: int
    """The number of applied chunks; a chunk counts once for each shard that has applied it."""
    nbytes: int


def statistics(captured: Captured) -> Statistics:
    """Return what captured shards hold in total."""
    shards, neurons = captured.shards, captured.columns.neurons
    return Statistics(
        sum(len(np.unique(neurons.ids(shard.occurring)[0])) for shard in shards),
        sum(len(shard.occurring) for shard in shards),
        sum(shard.connections for shard in shards),
        sum(int(shard.count.sum()) for shard in shards),
        sum(map(len, captured.applied)),
        sum(shard.nbytes for shard in shards),
    )
