"""Which columns texts share: of whole chunks, roughly and fast; of sentences, to put like to like.

A chunk is part of what names a job, so sentences are put together when the text is cut, and by a
pure function of the text. It pays where neighbours in a text have little to do with each other; in
prose they have, and hardly a byte is saved: `python -m tests.benchmarks.policies` shows both.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ids, Ints

Sketch = npt.NDArray[np.int64]
"""[B] whether a chunk touches any column of each bucket."""

BUCKETS = 2048
"""A chunk touches some 150 columns, so few of them share a bucket."""


def sketch(concepts: Ids) -> Sketch:
    """Return which buckets some concepts fall into: ids are hashes, so their last bits will do."""
    found = np.zeros(BUCKETS, np.int64)
    found[(concepts % np.uint64(BUCKETS)).astype(np.int64)] = 1
    return found


class Common:
    """What chunks have in common as a rule."""

    def __init__(self) -> None:
        self._total = np.zeros(BUCKETS, np.int64)
        self._chunks = 0

    def add(self, one: Sketch) -> None:
        """Take in one more chunk."""
        self._total += one
        self._chunks += 1

    def beyond(self, some: Sequence[Sketch], others: Sequence[Sketch]) -> Ints:
        """Return by how much each of some chunks shares more with the others than chunks do.

        Without that comparison, the small chunks would always come first, and the large ones,
        which share much with all, would be left to be learned together.
        """
        theirs = self._chunks * np.sum(others, axis=0) - len(others) * self._total  # [B]
        return np.array([one @ theirs for one in some], np.int64)


def grouped(columns: Sequence[Ids], size: int) -> list[Ints]:
    """Put sentences that share columns into groups of a size; each is told by its columns.

    A group starts with the first sentence that is left, and takes in, one by one, the sentence of
    whose columns it has the most; each keeps the text's order. The caller bounds the window: the
    time that it takes grows with its square.
    """
    sets = [np.unique(one) for one in columns]
    lengths = np.array([len(one) for one in sets], np.int64)  # [S]
    of = np.repeat(np.arange(len(sets)), lengths)
    _, slots = np.unique(np.concatenate([*sets, np.empty(0, np.uint64)]), return_inverse=True)
    order = np.argsort(slots, kind="stable")
    having = np.split(of[order], np.cumsum(np.bincount(slots))[:-1])  # by column: its sentences
    slots_of = np.split(slots, np.cumsum(lengths)[:-1])
    free = np.ones(len(sets), np.bool_)
    groups = []
    while free.any():
        groups.append(_group(free, slots_of, having, lengths, size))
    return groups


def _group(
    free: npt.NDArray[np.bool_],
    slots_of: Sequence[Ints],
    having: Sequence[Ints],
    lengths: Ints,
    size: int,
) -> Ints:
    """Take a group out of what is free."""
    shared = np.zeros(len(free), np.int64)
    touched: set[int] = set()
    group: list[int] = []
    while len(group) < size and free.any():
        # A sentence without any column counts as one of whose columns the group has none.
        likeness = np.where(free, shared / (lengths + 1), -1.0)
        best = int(np.argmax(likeness))
        free[best] = False
        group.append(best)
        for column in set(slots_of[best].tolist()) - touched:
            shared[having[column]] += 1
            touched.add(column)
    return np.array(sorted(group), np.int64)
