"""Which columns to cut: as somebody names them, or as a sample of the text shows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import UsageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.sequence import Ids, Ints
from giaann_p2p.store.cut_columns import MOST_ALL, MOST_CUT, MOST_PARTS, Cut, checked, cut_columns
from giaann_p2p.store.layout import Layout

_MOST_OF_SHARD = 1 / 8
"""The largest part of a column, as a share of a shard's mean. Then shards of many parts differ by
little, although where each part lies is chance."""
_DIGITS = 9
"""A number of so many digits is no number of parts."""


class Spread(NamedTuple):
    """How evenly the connections of a text lie in shards."""

    largest: float
    """The largest shard, as a multiple of the mean."""
    parts: int
    """The parts of all columns that are cut."""


def named_cuts(text: str) -> tuple[Cut, ...]:
    """Return the cuts that a text names, such as "day=16,sea=4"; UsageError if it is wrong."""
    found = []
    for one in text.split(",") if text else ():
        word, _, parts = one.strip().rpartition("=")
        if not (word and parts.isascii() and parts.isdecimal() and len(parts) < _DIGITS):
            raise UsageError(
                f"{one.strip()!r} is no column with its number of parts: give WORD=PARTS"
            )
        found.append(Cut(word, int(parts)))
    return checked(found)


def cuts_for(sample: Delta, layout: Layout, before: Sequence[Cut] = ()) -> tuple[Cut, ...]:
    """Return the columns to cut so that no part is large beside a shard, judging by a sample.

    `before`: the cuts in force; a column is only cut into more parts. If columns would have too
    many parts together, the largest are cut.
    """
    concept, heaviest = _blocks(sample, layout)
    most = sample.connections / layout.shards * _MOST_OF_SHARD
    known = {cut.word: cut.parts for cut in before}
    chosen, room = list[Cut](), MOST_ALL - sum(known.values())
    for at in np.argsort(-heaviest, kind="stable").tolist():
        word = sample.names[int(concept[at])]
        parts = min(MOST_PARTS, 1 << max(0, int(np.ceil(np.log2(heaviest[at] / most)))))
        if parts > known.get(word, 1):
            room -= parts - known.get(word, 0)
            if room < 0 or len({*known, *(cut.word for cut in chosen), word}) > MOST_CUT:
                break
            chosen.append(Cut(word, parts))
    return checked(chosen)


def spread(sample: Delta, layout: Layout, cuts: Sequence[Cut]) -> Spread:
    """Return how evenly a sample's connections lie in shards, with these columns cut."""
    columns = cut_columns(tuple(cuts))
    delta = columns.cut(sample)
    homes = layout.shards_of(delta.concept, delta.feature)
    held = np.bincount(homes, delta.lengths, minlength=layout.shards)
    return Spread(float(held.max() / held.mean()), sum(cut.parts for cut in cuts))


def _blocks(sample: Delta, layout: Layout) -> tuple[Ids, Ints]:
    """Return the concepts, and the connections of the largest block of each one's column."""
    concept, at = np.unique(sample.concept, return_inverse=True)
    block = layout.block_of(sample.feature).astype(np.int64)
    held = np.bincount(at * layout.blocks + block, sample.lengths, len(concept) * layout.blocks)
    heaviest = held.reshape(len(concept), layout.blocks).max(axis=1)
    there = heaviest > 0
    return concept[there], heaviest[there]
