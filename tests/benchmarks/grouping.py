"""Groups similar sentences, to see what a swarm would save by learning them together.

Grouping pays if neighbouring sentences are unrelated. In prose they are related, and it saves
hardly a byte: `python -m tests.benchmarks.policies` shows both.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.sequence import Ids, Ints


def grouped(columns: Sequence[Ids], size: int) -> list[Ints]:
    """Group sentences that share columns; each sentence is given by its columns.

    A group starts with the first sentence left, then repeatedly adds the sentence with the largest
    fraction of its columns in the group, up to `size`. Within a group, sentences keep the order of
    the text. The time grows with the square of the number of sentences, which the caller bounds.
    """
    sets = [np.unique(one) for one in columns]
    lengths = np.array([len(one) for one in sets], np.int64)  # shape [S]
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
    """Return the next group of free sentences, and mark them as taken."""
    shared = np.zeros(len(free), np.int64)
    touched: set[int] = set()
    group: list[int] = []
    while len(group) < size and free.any():
        # A sentence without columns has likeness 0, like one that shares no column with the group.
        likeness = np.where(free, shared / (lengths + 1), -1.0)
        best = int(np.argmax(likeness))
        free[best] = False
        group.append(best)
        for column in set(slots_of[best].tolist()) - touched:
            shared[having[column]] += 1
            touched.add(column)
    return np.array(sorted(group), np.int64)
