"""Slices of a row: what the row says about a part of all targets.

A frequent word's row grows with the model, and so outgrows any message. Then it is read in slices:
targets are divided in halves by a bit of their hash, as often as necessary. The slices of a row may
be read at different moments, and so may the rows of an answer.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from giaann_p2p.model.rows import Row
from giaann_p2p.model.sequence import Ids

MOST_HALVINGS = 16
"""How often targets can be halved: enough for rows with some billions of connections."""
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x9E3779B97F4A7C15)
_BITS = 64


class RowSlice(NamedTuple):
    """One of the 2^halvings parts of all targets."""

    halvings: int
    number: int
    """The number of the part, which is the first bits of its targets' hashes."""

    @property
    def halves(self) -> "tuple[RowSlice, RowSlice]":
        """The two slices that together have this slice's targets."""
        number = 2 * self.number
        return RowSlice(self.halvings + 1, number), RowSlice(self.halvings + 1, number + 1)

    def has(self, concept: Ids, feature: Ids) -> npt.NDArray[np.bool_]:
        """Return for each target whether it is in the slice."""
        if not self.halvings:
            return np.ones(len(concept), np.bool_)
        mixed = (concept * _FIRST + feature) * _SECOND
        found: npt.NDArray[np.bool_] = mixed >> np.uint64(_BITS - self.halvings) == self.number
        return found


EVERYTHING = RowSlice(0, 0)
"""The slice that has all targets."""


def whole(slices: Sequence[Row | None]) -> Row | None:
    """Join all slices of a row; None if every slice is None.

    A slice is None if the row was still unknown when it was read.
    """
    found = [row for row in slices if row is not None]
    if len(found) < 2:
        return found[0] if found else None
    first = np.cumsum([0, *(len(row.target_concept) for row in found)])
    return replace(
        found[0],
        count=max(row.count for row in found),
        target_concept=np.concatenate([row.target_concept for row in found]),
        target_feature=np.concatenate([row.target_feature for row in found]),
        target=np.concatenate([row.target + at for row, at in zip(found, first, strict=False)]),
        branch=np.concatenate([row.branch for row in found]),
        segment=np.concatenate([row.segment for row in found]),
        strength=np.concatenate([row.strength for row in found]),
        numbers=None,
    )
