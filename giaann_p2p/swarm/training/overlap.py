"""Estimates how many columns chunks share, from a small sketch of each chunk's columns."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ids, Ints

Sketch = npt.NDArray[np.int64]
"""A sketch of a chunk, of shape [BUCKETS]: 1 for each bucket with a column that the chunk changes,
else 0."""

BUCKETS = 2048
"""Number of buckets in a sketch. A chunk changes some 150 columns, so few of its columns share a
bucket."""


def sketch(concepts: Ids) -> Sketch:
    """Return the sketch of a chunk with these concepts.

    Concept ids are hashes, so their lowest bits spread them evenly over the buckets.
    """
    found = np.zeros(BUCKETS, np.int64)
    found[(concepts % np.uint64(BUCKETS)).astype(np.int64)] = 1
    return found


class Common:
    """The average sketch of a job's chunks, as a baseline for overlaps."""

    def __init__(self) -> None:
        self._total = np.zeros(BUCKETS, np.int64)
        self._chunks = 0

    def add(self, one: Sketch) -> None:
        """Add one chunk's sketch to the average."""
        self._total += one
        self._chunks += 1

    def beyond(self, some: Sequence[Sketch], others: Sequence[Sketch]) -> Ints:
        """Return how much more each chunk overlaps `others` than as many average chunks.

        The numbers have no unit, and only their order matters. Without the baseline, small chunks
        would always be chosen first. Large chunks, which overlap with all others, would be left to
        the end and learned together.
        """
        theirs = self._chunks * np.sum(others, axis=0) - len(others) * self._total  # shape [B]
        return np.array([one @ theirs for one in some], np.int64)
