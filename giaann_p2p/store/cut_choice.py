"""Chooses the columns to cut: a user names them, or they are large in a sample of the text."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import UsageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.sequence import Ids, Ints
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.ids import RESERVED
from giaann_p2p.model.traits import traits_of
from giaann_p2p.store.cut_columns import cut_columns
from giaann_p2p.store.cuts import MOST_ALL, MOST_CUT, MOST_PARTS, Cut, can_be_cut, checked, together
from giaann_p2p.store.layout import Layout

_MOST_OF_SHARD = 1 / 8
"""The largest part of a column, as a share of the mean shard. Parts are spread over the shards at
random; if all are so small, the shards differ by little."""
_COARSER = 2**0.5
"""The factor by which the largest part is raised, each time that there are too many parts."""
_DIGITS = 9
"""A number with this many digits is too large to be a number of parts."""


class Spread(NamedTuple):
    """How evenly the connections of a text are spread over the shards."""

    largest: float
    """The largest shard, as a multiple of the mean."""
    parts: int
    """The total number of parts of all columns that are cut."""


def named_cuts(text: str) -> tuple[Cut, ...]:
    """Return the cuts of nouns that are listed in a text such as "day=16,sea=4".

    UsageError if the text is malformed, or if a cut is invalid.
    """
    found = []
    for one in text.split(",") if text else ():
        word, _, parts = one.strip().rpartition("=")
        if not (word and parts.isascii() and parts.isdecimal() and len(parts) < _DIGITS):
            raise UsageError(
                f"{one.strip()!r} is no column with its number of parts: give WORD=PARTS"
            )
        found.append(Cut(word, int(parts)))
    return checked(found)


def check_choice(cut: str, cut_like: str) -> None:
    """Raise UsageError if both options are given, or if `cut` is not a valid list of cuts."""
    if cut and cut_like:
        raise UsageError("give --cut to name the columns, or --cut-like for a text, not both")
    named_cuts(cut)


def of_nouns(cuts: Sequence[Cut], spec: ModelSpec) -> tuple[Cut, ...]:
    """Translate cuts of nouns into cuts of the columns that a model has for these nouns."""
    names = traits_of(spec.profile).column_names
    named = [
        Cut(name, cut.parts)
        for cut in cuts
        for name in ([cut.word] if cut.word in RESERVED else names(cut.word, spec))
    ]
    return checked(together([named]))  # several nouns may begin with one token


def cuts_for(sample: Delta, layout: Layout, before: Sequence[Cut] = ()) -> tuple[Cut, ...]:
    """Return the columns to cut so that, in a sample, each part is small compared with a shard.

    `before`: the cuts in force; a column is only cut into more parts. If there would be too many
    columns or parts, all are cut more coarsely, because a large column that is left whole does more
    harm than parts that are all somewhat larger.
    """
    concept, heaviest = _blocks(sample, layout)
    words = [sample.names[one] for one in concept.tolist()]
    known = {cut.word: cut.parts for cut in before}
    has = np.array([known.get(word, 1) for word in words], np.int64)
    most = sample.connections / layout.shards * _MOST_OF_SHARD
    while True:
        needed = 1 << np.ceil(np.log2(np.maximum(heaviest / most, 1))).astype(np.int64)
        parts = np.maximum(has, np.minimum(needed, MOST_PARTS))
        chosen = [Cut(words[at], int(parts[at])) for at in np.flatnonzero(parts > has)]
        after = known | {cut.word: cut.parts for cut in chosen}
        if len(after) <= MOST_CUT and sum(after.values()) <= MOST_ALL:
            return checked(chosen)
        most *= _COARSER


def spread(sample: Delta, layout: Layout, cuts: Sequence[Cut]) -> Spread:
    """Return how evenly a sample's connections are spread over shards if these columns are cut."""
    held = by_shard(sample, layout, cuts)
    return Spread(float(held.max() / held.mean()), sum(cut.parts for cut in cuts))


def by_shard(sample: Delta, layout: Layout, cuts: Sequence[Cut]) -> Ints:
    """Return how many of a sample's connections each shard has if these columns are cut."""
    delta = cut_columns(tuple(cuts)).cut(sample)
    homes = layout.shards_of(delta.concept, delta.feature)
    return np.bincount(homes, delta.lengths, minlength=layout.shards).astype(np.int64)


def _blocks(sample: Delta, layout: Layout) -> tuple[Ids, Ints]:
    """Return concepts, and for each the number of connections in the largest block of its column.

    Concepts without connections are left out, and so are those whose columns cannot be cut.
    """
    concept, at = np.unique(sample.concept, return_inverse=True)
    block = layout.block_of(sample.feature).astype(np.int64)
    held = np.bincount(at * layout.blocks + block, sample.lengths, len(concept) * layout.blocks)
    heaviest = held.reshape(len(concept), layout.blocks).max(axis=1)
    there = (heaviest > 0) & [can_be_cut(sample.names[word]) for word in concept.tolist()]
    return concept[there], heaviest[there]
