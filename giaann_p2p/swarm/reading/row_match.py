"""Comparison of rows: two peers can both be right about a row if it is equal or has only grown.

Learning only adds. So a correct row is contained in every later correct row: the earlier count is
no higher, and each connection of the earlier row is also in the later one, at least as strong.
Peers hold connections in different orders, so the order is ignored.
"""

import numpy as np
from msgspec.structs import replace

from giaann_p2p.model.rows import Row
from giaann_p2p.model.sequence import Ids, Ints


def same(one: Row | None, other: Row | None) -> bool:
    """Return whether two rows are equal, apart from the order of connections."""
    if one is None or other is None:
        return one is other
    if (one.neuron, one.name, one.count) != (other.neuron, other.name, other.count):
        return False
    if _bytes(one) == _bytes(other):  # the common case: updates came in the same order
        return True
    # Rows are equal if one has grown into the other, with the same number and sum of strengths.
    alike = len(one.strength) == len(other.strength)
    return alike and int(one.strength.sum()) == int(other.strength.sum()) and grown(one, other)


def grown(old: Row | None, new: Row | None) -> bool:
    """Return whether a row `new` is equal to `old`, or is `old` with something added."""
    if old is None or new is None:
        return old is None
    if (old.neuron, old.name) != (new.neuron, new.name) or old.count > new.count:
        return False
    size = len(old.strength)
    if size > len(new.strength):
        return False
    keys = [np.concatenate(pair) for pair in zip(_places(old), _places(new), strict=True)]
    strength = np.concatenate([old.strength, new.strength])
    is_new = np.arange(len(strength)) >= size
    order = np.lexsort((is_new, *keys))  # a connection in both rows forms a pair, the old one first
    before, behind = order[:-1], order[1:]
    pairs = strength[before] <= strength[behind]
    for key in keys:
        pairs &= key[before] == key[behind]
    return int(np.count_nonzero(pairs)) == size


def alone(row: Row | None) -> Row | None:
    """Return a copy of a row whose arrays do not keep the rest of the answer in memory."""
    if row is None:
        return None
    return replace(
        row,
        target_concept=row.target_concept.copy(),
        target_feature=row.target_feature.copy(),
        target=row.target.copy(),
        branch=row.branch.copy(),
        segment=row.segment.copy(),
        strength=row.strength.copy(),
    )


def _bytes(row: Row) -> list[bytes]:
    """Return a row's connections as bytes, in the order in which they are stored."""
    targets = row.target_concept, row.target_feature, row.target
    return [array.tobytes() for array in (*targets, row.branch, row.segment, row.strength)]


def _places(row: Row) -> tuple[Ints, Ids, Ids]:
    """Return the key that identifies each connection of a row, as three arrays."""
    place = row.branch.astype(np.int64) << 8 | row.segment
    return place, row.target_feature[row.target], row.target_concept[row.target]
