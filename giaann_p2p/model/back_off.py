"""Chooses the first word of an answer by counts, where activation leads to none.

After a word that was never learned in its column nothing is active, and after a known one perhaps
only other columns. So the last words read are tried, the nearest first. The choice is the word that
most often followed the tried one at this distance:

1. in its own column, whether or not the column rules exclude it;
2. in the columns of the most frequent nouns, and in its own as a noun.

If nothing ever followed any of them, the choice is the most frequent noun. All these counts were
learned anyway. They add up, so the choice does not depend on the order of learning, and it is the
same on every machine. Ties go to the word with the smaller number, and among its neurons to the
smaller one.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from giaann_p2p.errors import PromptError
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.rows import Neuron, Question, Row, Steps
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.tier import Tier

WORDS = 4
"""How many of the last words read are tried. The rows of all of them are read at once."""
_COLUMNS = 16
"""How many of the most frequent nouns' columns stand for any column: no row ignores columns."""
_LONGEST_BLANK = 16
_BLANKS = np.array([word_id(" " * size) for size in range(1, _LONGEST_BLANK + 1)], np.uint64)
"""Words that consist of spaces, where a text has several in a row. They are never chosen."""


class Guess(NamedTuple):
    """A neuron that counts chose."""

    neuron: Neuron
    tier: Tier
    candidates: int
    """The number of words from which the neuron's word was chosen."""
    probability: float
    """The share of the neuron's word in the counts of all these words."""


def guessed(own: Sequence[Row], words: Sequence[str], spec: ModelSpec) -> Steps[Guess]:
    """Choose by counts; PromptError if nothing was learned yet.

    `own`: the rows of the words read last, in their own columns, the nearest first. `words`: the
    words read last, even those without a column.
    """
    # The farthest feature segment holds all greater distances, too, so it is not used.
    farthest = min(WORDS, spec.feature_segments - 1)
    columns, rows = list[Row](), list[list[Row]]()
    for at in range(min(max(len(own), len(words)), farthest)):
        segment = spec.segments - 1 - at
        found = _most_frequent(own[at : at + 1], segment, Tier.OWN)
        if found is None and not columns:
            columns = yield from _frequent()
            rows = yield from _anywhere(words[:farthest], columns)
        if found is None and at < len(rows):
            found = _most_frequent(rows[at], segment, Tier.ANY)
        if found is not None:
            return found
    columns = columns or (yield from _frequent())
    first, total = columns[0], sum(row.count for row in columns)
    return Guess(first.neuron, Tier.FREQUENT, len(columns), first.count / total)


def _frequent() -> Steps[list[Row]]:
    """Return the most frequent nouns, without their connections, the most frequent first."""
    rows = [row for row in (yield Question((), frequent=_COLUMNS)) if row is not None]
    if not rows:
        raise PromptError("nothing was learned yet: train the model on a text first")
    return rows


def _anywhere(words: Sequence[str], columns: Sequence[Row]) -> Steps[list[list[Row]]]:
    """Return for each word its rows in some columns and its row as a noun, if they exist."""
    neurons = [
        neuron
        for feature in map(word_id, words)
        for neuron in [
            *(Neuron(row.neuron.concept, feature) for row in columns),
            Neuron(feature, PRIME),
        ]
    ]
    rows = yield Question(neurons)
    each = len(columns) + 1
    return [
        [row for row in rows[at : at + each] if row is not None] for at in range(0, len(rows), each)
    ]


def _most_frequent(rows: Sequence[Row], segment: int, tier: Tier) -> Guess | None:
    """Return the strongest neuron of the word that most often follows in a segment; None if no word
    follows."""
    words, neurons = Counter[int](), Counter[Neuron]()
    for row in rows:
        at = np.flatnonzero(row.segment == segment)
        target = row.target[at]
        concept, feature = row.target_concept[target], row.target_feature[target]
        word = np.where(feature == PRIME, concept, feature)
        seen = ~np.isin(word, _BLANKS)
        found = (word[seen], concept[seen], feature[seen], row.strength[at][seen])
        for number, home, own, units in zip(*(part.tolist() for part in found), strict=True):
            words[number] += units
            neurons[Neuron(home, own)] += units
    if not words:
        return None
    best = min(words, key=lambda number: (-words[number], number))
    # No word's number is PRIME, so a neuron stands for the word by its feature or by its concept.
    named = [one for one in neurons if best == (one.feature or one.concept)]
    neuron = min(named, key=lambda one: (-neurons[one], one))
    return Guess(neuron, tier, len(words), words[best] / words.total())
