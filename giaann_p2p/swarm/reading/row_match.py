"""Whether two peers can both be right about a row: it is the same, or one has grown into the other.

What is learned is only ever added. So a true row of an earlier time is contained in every true row
of a later one: its count is no higher, and none of its connections is missing or stronger. Peers
hold connections in orders of their own, which therefore tell nothing.
"""

from dataclasses import replace

import numpy as np

from giaann_p2p.model.rows import Row
from giaann_p2p.model.sequence import Ids, Ints


def same(one: Row | None, other: Row | None) -> bool:
    """Tell whether two rows say the same, in whatever order."""
    if one is None or other is None:
        return one is other
    if (one.neuron, one.name, one.count) != (other.neuron, other.name, other.count):
        return False
    if _bytes(one) == _bytes(other):  # as mostly, where updates came in the same order
        return True
    # None of them being stronger, they are equal if they are as many and add up to the same.
    alike = len(one.strength) == len(other.strength)
    return alike and int(one.strength.sum()) == int(other.strength.sum()) and grown(one, other)


def grown(old: Row | None, new: Row | None) -> bool:
    """Tell whether a row is another one to which something was added, or nothing."""
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
    order = np.lexsort((is_new, *keys))  # what is in both stands side by side, the old one first
    before, behind = order[:-1], order[1:]
    pairs = strength[before] <= strength[behind]
    for key in keys:
        pairs &= key[before] == key[behind]
    return int(np.count_nonzero(pairs)) == size


def alone(row: Row | None) -> Row | None:
    """Return a row whose arrays keep nothing else in memory of the answer that it came with."""
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
    """Return a row's connections in the order in which they are."""
    targets = row.target_concept, row.target_feature, row.target
    return [array.tobytes() for array in (*targets, row.branch, row.segment, row.strength)]


def _places(row: Row) -> tuple[Ints, Ids, Ids]:
    """Return what tells a connection from the others."""
    place = row.branch.astype(np.int64) << 8 | row.segment
    return place, row.target_feature[row.target], row.target_concept[row.target]
