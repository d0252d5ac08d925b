"""A fast sketch of a chunk's columns, which shows how much chunks overlap."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ids, Ints

Sketch = npt.NDArray[np.int64]
"""Shape [B]: 1 for each bucket of which a chunk touches a column, else 0."""

BUCKETS = 2048
"""Number of buckets of a sketch. A chunk touches some 150 columns, so few of them share a
bucket."""


def sketch(concepts: Ids) -> Sketch:
    """Return which buckets some concepts fall into; ids are hashes, so the lowest bits suffice."""
    found = np.zeros(BUCKETS, np.int64)
    found[(concepts % np.uint64(BUCKETS)).astype(np.int64)] = 1
    return found


class Common:
    """The average overlap of chunks, as a baseline."""

    def __init__(self) -> None:
        self._total = np.zeros(BUCKETS, np.int64)
        self._chunks = 0

    def add(self, one: Sketch) -> None:
        """Add one chunk to the average."""
        self._total += one
        self._chunks += 1

    def beyond(self, some: Sequence[Sketch], others: Sequence[Sketch]) -> Ints:
        """Return how much more each of some chunks overlaps `others` than the average chunk does.

        Without this baseline, small chunks would always be chosen first, and large chunks, which
        overlap with all others, would be left to the end and learned together.
        """
        theirs = self._chunks * np.sum(others, axis=0) - len(others) * self._total  # shape [B]
        return np.array([one @ theirs for one in some], np.int64)
