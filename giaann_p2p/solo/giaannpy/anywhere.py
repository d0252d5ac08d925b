"""Computes the rows that ignore columns, which databases lack, from the rows of columns (own rows).

Learning adds the same to (any column, a) -> (any column, b) as to the connection of a and b in
their columns, if they are at most five tokens apart. So the former is the sum of the latter over
all columns, segment by segment. The sums for the parts of a database add up to that of the whole.
"""

from collections.abc import Sequence

import numpy as np

from giaann_p2p.model.delta import EMPTY, ConnectionKey, Delta, first_of_runs, total
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.spec import ModelSpec, increment
from giaann_p2p.model.subwords.ids import ANY, RESERVED
from giaann_p2p.model.subwords.spec import segment_of
from giaann_p2p.solo.giaannpy.rows import reserved_names


def with_anywhere(parts: Sequence[Delta], spec: ModelSpec) -> Delta:
    """Return the sum of own rows, plus the rows that ignore columns if the model has any.

    The parts may include counts of delimiters, which have no connections.
    """
    found = total([*parts, EMPTY])
    if not getattr(spec.subwords, "any_column", False):
        return found
    reserved = np.array(list(RESERVED.values()), np.uint64)
    return total([found, anywhere(found.only(~np.isin(found.concept, reserved)), spec)])


def anywhere(own: Delta, spec: ModelSpec) -> Delta:
    """Return the rows that ignore columns, computed from a delta that has own rows only."""
    if not own.neurons:
        return EMPTY
    prime = own.feature == np.uint64(PRIME)
    token, slot = np.unique(np.where(prime, own.concept, own.feature), return_inverse=True)
    slot = slot.astype(np.int64) + 1  # 0 is EVERYTHING, whose feature is the smallest
    count = np.zeros(len(token) + 1, np.int64)
    np.add.at(count, slot, own.count)
    count[0] = own.count.sum()
    key = ConnectionKey.for_sizes(len(count), spec.branches, spec.segments)
    near = own.segment >= spec.column_segments
    segment = own.segment[near].astype(np.int64)
    pairs = key.pack(
        slot[own.source[near]], slot[own.target[near]], np.zeros_like(segment), segment
    )
    occurring = np.flatnonzero(count[1:]) + 1
    nothing = np.zeros_like(occurring)
    each = key.pack(nothing, occurring, nothing, nothing + segment_of(spec, 1))
    packed = np.concatenate([each, pairs])
    units = np.concatenate([count[occurring] * increment(1), own.strength[near]])
    order = np.argsort(packed, kind="stable")
    packed = packed[order]
    first = np.flatnonzero(first_of_runs(packed))
    return key.delta(
        np.full(len(count), ANY, np.uint64),
        np.concatenate([np.array([PRIME], np.uint64), token]),
        count,
        packed[first],
        np.add.reduceat(units[order], first) if len(units) else units,
        {number: own.names[number] for number in token.tolist()} | reserved_names(ANY),
    )
