"""A made-up model of any size: copies of what a brain has learned, under other names.

Copies of columns have names that no text has, so they only take room. The rows that ignore columns
are copied with other targets: each copy leads to tokens that come somewhat later in the order of
all tokens. So these rows become as long as they would in a model of that size.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.delta import ConnectionKey, Delta
from giaann_p2p.model.hash_table import Bools
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.sequence import Ids, Ints, Names
from giaann_p2p.model.subwords.ids import ANY, ANY_NAME, RESERVED
from giaann_p2p.model.subwords.tokeniser import Tokeniser

IsHere = Callable[[Ids, Ids], Bools]
"""Returns which rows are wanted, given their concepts and features."""

_STRIDE = 7_919
"""By how many tokens the targets of one copy come after those of the copy before."""


class Learned(NamedTuple):
    """A brain's knowledge, in two parts."""

    own: Delta
    """The rows in columns."""
    anywhere: Delta
    """The rows that ignore columns."""

    @classmethod
    def of(cls, knowledge: Delta) -> "Learned":
        """Cut a brain's knowledge."""
        concept = knowledge.concept
        reserved = np.isin(concept, np.array([*RESERVED.values()], np.uint64))
        return cls(knowledge.only(~reserved), knowledge.only(concept == np.uint64(ANY)))


def renamed(own: Delta, number: int, is_here: IsHere) -> Delta:
    """Return a copy of the rows in columns, each in a column of another name.

    Only the rows that `is_here` chooses by their new names are copied.
    """
    concepts, which = np.unique(own.concept, return_inverse=True)
    texts = [f"{own.names[concept]} {number}" for concept in concepts.tolist()]
    ids = np.array([word_id.__wrapped__(text) for text in texts], np.uint64)
    of = dict(zip(concepts.tolist(), ids.tolist(), strict=True))
    here = own.only(rows_of(own) & is_here(ids[which], own.feature))
    concept = ids[np.searchsorted(concepts, here.concept)]
    names = {word: own.names[word] for word in np.unique(here.feature).tolist() if word != PRIME}
    names |= {of[word]: text for word, text in zip(concepts.tolist(), texts, strict=True)}
    order = np.lexsort((here.feature, concept))
    at = np.empty(here.neurons, np.int64)
    at[order] = np.arange(here.neurons)
    neurons = concept[order], here.feature[order], here.count[order]
    return _sorted(here, neurons, at[here.source], at[here.target], names)


def rows_of(delta: Delta) -> Bools:
    """Return which neurons have rows; the others are only targets."""
    there: Bools = (delta.count > 0) | (delta.lengths > 0)
    return there


def turned(anywhere: Delta, known: Tokeniser, number: int) -> Delta:
    """Return a copy of rows that ignore columns, which leads to other tokens."""
    vocabulary = np.unique(known.ids)
    feature = np.concatenate([[np.uint64(PRIME)], vocabulary])
    at = np.searchsorted(feature, anywhere.feature)
    target = (at[anywhere.target] - 1 + number * _STRIDE) % len(vocabulary) + 1
    count = np.zeros(len(feature), np.int64)
    count[at] = anywhere.count
    concept = np.full(len(feature), ANY, np.uint64)
    names = {**dict(zip(known.ids.tolist(), known.names, strict=True)), ANY: ANY_NAME}
    return _sorted(anywhere, (concept, feature, count), at[anywhere.source], target, names)


def _sorted(
    of: Delta, neurons: tuple[Ids, Ids, Ints], source: Ints, target: Ints, names: Names
) -> Delta:
    """Return a delta of other neurons, with the connections of `of` between them."""
    branches, segments = int(of.branch.max()) + 1, int(of.segment.max()) + 1
    key = ConnectionKey.for_sizes(len(neurons[0]), branches, segments)
    packed = key.pack(source, target, of.branch.astype(np.int64), of.segment.astype(np.int64))
    order = np.argsort(packed)
    return key.delta(*neurons, packed[order], of.strength[order], names)
