"""Divides a shard by rows, when the number of shards is doubled."""

from collections.abc import Iterator

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.memory.shard import Shard
from giaann_p2p.store.memory.strengths import Strengths


def split(shard: Shard, part_of: Ints, parts: int) -> Iterator[Shard]:
    """Yield each of `parts` shards into which a merged shard is divided.

    `part_of`: the part of each row. The rows of a part stay in the order of the shard, so no row's
    index becomes larger.
    """
    order = np.argsort(part_of, kind="stable")
    ends = np.searchsorted(part_of[order], np.arange(parts + 1))
    units = shard.strengths.units(0, shard.connections)
    for part in range(parts):
        yield _only(shard, order[ends[part] : ends[part + 1]], units)


def _only(shard: Shard, rows: Ints, units: Ints) -> Shard:
    """Return the given rows of a shard; `units`: the strengths of all of its connections."""
    first = shard.starts[rows]
    lengths = shard.starts[rows + 1] - first
    starts = np.zeros(len(rows) + 1, shard.starts.dtype)
    np.cumsum(lengths, out=starts[1:])
    held = np.arange(starts[-1]) + np.repeat(first - starts[:-1], lengths)  # the connections
    return Shard(
        shard.neuron[rows],
        shard.count[rows],
        starts,
        shard.target[held],
        shard.place[held],
        Strengths.of(units[held]),
        shard.floor,
    )
