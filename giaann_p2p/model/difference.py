"""Subtracts a delta from a sum that contains it: the result is exactly the sum of the others."""

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import EMPTY, ConnectionKey, Delta, unique_neurons


def less(whole: Delta, part: Delta) -> Delta | None:
    """Return `whole` minus `part`; None if `whole` does not contain all of `part`.

    Names are not subtracted: if a hash collision gave two texts to one number, the smaller stays.
    """
    if not part.neurons:
        return whole
    concept, feature, slot = unique_neurons(
        np.concatenate([whole.concept, part.concept]),
        np.concatenate([whole.feature, part.feature]),
    )
    if len(concept) > whole.neurons:
        return None
    key = ConnectionKey.for_sizes(
        whole.neurons,
        *(
            max(int(array.max(initial=0)) for array in pair) + 1
            for pair in ((whole.branch, part.branch), (whole.segment, part.segment))
        ),
    )
    at = slot[whole.neurons :]
    count = whole.count.copy()
    count[at] -= part.count
    packed = key.of(whole, slot[: whole.neurons])
    taken = key.of(part, at)
    place = np.searchsorted(packed, taken)
    known = place < len(packed)
    if not (known.all() and np.array_equal(packed[place], taken)):
        return None
    strength = whole.strength.copy()
    strength[place] -= part.strength
    if int(count.min(initial=0)) < 0 or int(strength.min(initial=0)) < 0:
        return None
    left = strength > 0
    return _occurring(key.delta(concept, feature, count, packed[left], strength[left], whole.names))


def _occurring(delta: Delta) -> Delta:
    """Return the rows that are not empty."""
    rows: npt.NDArray[np.bool_] = (delta.count > 0) | (delta.lengths > 0)
    return delta.only(rows) if rows.any() else EMPTY
