"""Cuts a delta into parts of bounded size whose sum is the delta; long rows are cut, too."""

from collections.abc import Iterator

import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.sequence import Ints


def count_of(delta: Delta, most: int) -> int:
    """Return the number of parts into which `windows` cuts a delta."""
    return -(-(delta.neurons + delta.connections) // most)


def windows(delta: Delta, most: int) -> Iterator[Delta]:
    """Yield parts with at most `most` connections each, and at most one neuron more than that.

    The rows and connections form a line, each row before its connections. The line is cut at equal
    distances; a row's count is in the part where the row starts. So equal deltas are cut alike.
    """
    source = delta.source.astype(np.int64)
    rows = delta.row_starts[:-1] + np.arange(delta.neurons)  # each row's position in the line
    connections = np.arange(delta.connections) + source + 1
    for start in range(0, delta.neurons + delta.connections, most):
        ends = [start, start + most]
        yield _window(
            delta, source, np.searchsorted(rows, ends), np.searchsorted(connections, ends)
        )


def _window(delta: Delta, source: Ints, rows: Ints, connections: Ints) -> Delta:
    """Return a delta with a range of the connections, and the counts of a range of the rows."""
    part = slice(*connections.tolist())
    first, last = rows.tolist()
    counted = np.arange(first, last)
    target = delta.target[part].astype(np.int64)
    kept = np.unique(np.concatenate([counted, source[part], target]))  # [v]
    count = np.zeros(len(kept), np.int64)
    count[np.searchsorted(kept, counted)] = delta.count[first:last]
    lengths = np.bincount(np.searchsorted(kept, source[part]), minlength=len(kept))
    concept, feature = delta.concept[kept], delta.feature[kept]
    used = np.unique(np.concatenate([concept, feature])).tolist()
    return Delta(
        concept,
        feature,
        count,
        np.concatenate([[0], np.cumsum(lengths)]),
        np.searchsorted(kept, target).astype(np.int32),
        delta.branch[part],
        delta.segment[part],
        delta.strength[part],
        {number: delta.names[number] for number in used if number in delta.names},
    )
