"""Where a single large column lies, and what its longest row takes."""

from functools import cache
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.rows import Neuron
from giaann_p2p.model.sequence import Ints
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import Cut
from giaann_p2p.store.layout import Layout
from tests.benchmarks.scale.cuts import asked_for
from tests.benchmarks.scale.lessons import learned
from tests.benchmarks.scale.prediction import answered
from tests.benchmarks.scale.shards import BLOCKS
from tests.benchmarks.scale.swarms import LINKS, REPLICAS, SHARDS
from tests.benchmarks.scale.tables import Cells, number, size

COLUMNS = {"1 GB": 10**9, "1 TB": 10**12}
"""Bytes of a column in RAM."""
PARTS = (256, 1_024)
"""Parts into which such a column is cut."""
_CHUNKS = 16
_PEERS, _BLOCKS = 1_000, 256
_RAM = 7.7
"""Bytes a connection (see docs/speed.md)."""
_LINK = LINKS[1]
_SLICE = 1 << 20
"""The most connections of a row that are read at once."""


class Parts(NamedTuple):
    """The largest column of a text when it is cut."""

    shards: int
    """In how many shards its parts lie."""
    fullest: float
    """The part of its connections in the fullest of these."""
    asked: int
    """The peers that a reader asks at once for that row."""


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
    told: Cells = {
        "its longest row, in RAM and sent": f"{size(row * _RAM)}, {size(sent)}",
        "slices in which that row is read": f"{1 << int(np.ceil(np.log2(row / _SLICE))):,}",
        f"seconds to read it at {size(_LINK)}/s, from one peer": number(sent / _LINK),
    }
    return cells | told | _cells_of_parts(nbytes, connections)


def _cells_of_parts(nbytes: float, connections: float) -> Cells:
    """Return the figures of the same column, cut."""
    cells: Cells = {}
    for parts in PARTS:
        one, of = in_parts(parts), f"{parts:,} parts, K = {_BLOCKS}"
        row = largest().longest * connections / parts
        sent = row * largest().travels
        whole = largest().longest * connections * largest().travels
        told = f"{one.shards:,}, {REPLICAS * one.shards:,}, {size(one.fullest * nbytes)}"
        slices = 1 << max(0, int(np.ceil(np.log2(row / _SLICE))))
        cells |= {
            f"{of}: shards, peers, bytes in the fullest shard": told,
            f"{of}: a part of its longest row, in RAM and sent, slices": (
                f"{size(row * _RAM)}, {size(sent)}, {slices:,}"
            ),
            f"{of}: peers asked for that row, of {_PEERS:,}": f"{one.asked:,}",
            f"{of}: seconds for the whole row, the senders and the reader at {size(_LINK)}/s": (
                f"{number(whole / one.asked / _LINK)}, {number(whole / _LINK)}"
            ),
        }
    return cells


@cache
def in_parts(parts: int) -> Parts:
    """Return the largest column of made-up text, cut."""
    delta = learned(_CHUNKS)
    longest = max(_rows().tolist(), key=delta.lengths.item)
    neuron = Neuron(int(delta.concept[longest]), int(delta.feature[longest]))
    columns = cut_columns((Cut(delta.names[neuron.concept], parts),))
    names, cut = columns.parts(neuron), columns.cut(delta)
    rows = np.flatnonzero(np.isin(cut.concept, [one.concept for one in names]))
    lengths = cut.lengths[rows]
    layout = Layout(shards=SHARDS[-1], blocks=_BLOCKS)
    held = np.bincount(layout.shards_of(cut.concept[rows], cut.feature[rows]), lengths)
    asked = asked_for(names, _PEERS, SHARDS[-1], _BLOCKS)
    return Parts(int(np.count_nonzero(held)), float(held.max() / lengths.sum()), asked)


def _rows() -> Ints:
    """Return the rows of the largest column that have connections."""
    delta = learned(_CHUNKS)
    concepts, at = np.unique(delta.concept, return_inverse=True)
    chosen = concepts[np.bincount(at, delta.lengths).argmax()]
    return np.flatnonzero((delta.concept == chosen) & (delta.lengths > 0))


@cache
def largest() -> Column:
    """Return the largest column of made-up text."""
    delta, rows = learned(_CHUNKS), _rows()
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
