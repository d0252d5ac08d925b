"""Where a single large column lies, and what its longest row takes."""

from functools import cache
from typing import NamedTuple

import numpy as np

from giaann_p2p.store.layout import Layout
from tests.benchmarks.scale.lessons import learned
from tests.benchmarks.scale.prediction import answered
from tests.benchmarks.scale.shards import BLOCKS
from tests.benchmarks.scale.swarms import LINKS, REPLICAS, SHARDS
from tests.benchmarks.scale.tables import Cells, number, size

COLUMNS = {"1 GB": 10**9, "1 TB": 10**12}
"""Bytes of a column in RAM."""
_CHUNKS = 16
_RAM = 7.7
"""Bytes a connection (see docs/speed.md)."""
_LINK = LINKS[1]
_SLICE = 1 << 20
"""The most connections of a row that are read at once."""


class Column(NamedTuple):
    """The largest column of a text, as parts of its connections."""

    shards: dict[int, int]
    """In how many shards it lies, by K."""
    fullest: dict[int, float]
    """The part in the fullest of these, by K."""
    longest: float
    """The part of its longest row."""
    travels: float
    """Bytes a connection of that row in a message."""


def column(at: int) -> Cells:
    """Return the figures of a column of this size."""
    found, nbytes = largest(), [*COLUMNS.values()][at]
    connections = nbytes / _RAM
    cells = {"connections": f"{number(connections / 1e6)} million"}
    for blocks in BLOCKS:
        shards, most = found.shards[blocks], found.fullest[blocks] * nbytes
        told = f"{shards:,}, {REPLICAS * shards:,}, {size(most)}"
        cells[f"K = {blocks:,}: shards, peers, bytes in the fullest shard"] = told
    row = found.longest * connections
    sent = row * found.travels
    return cells | {
        "its longest row, in RAM and sent": f"{size(row * _RAM)}, {size(sent)}",
        "slices in which that row is read": f"{1 << int(np.ceil(np.log2(row / _SLICE))):,}",
        f"seconds to read it at {size(_LINK)}/s, from one peer": number(sent / _LINK),
    }


@cache
def largest() -> Column:
    """Return the largest column of made-up text."""
    delta = learned(_CHUNKS)
    concepts, at = np.unique(delta.concept, return_inverse=True)
    chosen = concepts[np.bincount(at, delta.lengths).argmax()]
    rows = np.flatnonzero((delta.concept == chosen) & (delta.lengths > 0))
    lengths = delta.lengths[rows]
    shards, fullest = {}, {}
    for blocks in BLOCKS:
        layout = Layout(shards=SHARDS[-1], blocks=blocks)
        numbers = layout.shards_of(delta.concept[rows], delta.feature[rows])
        held = np.bincount(numbers, lengths)
        shards[blocks] = int(np.count_nonzero(held))
        fullest[blocks] = float(held.max() / lengths.sum())
    longest = int(rows[lengths.argmax()])
    travels = answered(_CHUNKS, longest) / int(lengths.max())
    return Column(shards, fullest, float(lengths.max() / lengths.sum()), travels)
