"""Measures how well a brain knows a text: top-1 accuracy on the tokens after the seed.

Every sentence with more than S tokens counts. Its first S tokens are the seed. Each further token
is predicted, and then either the true token is heard (feed `true`) or the predicted one (`own`). A
word is right if it is the true word, in any column; right neurons are counted separately.

With its own tokens, a sentence may end early, where nothing is predicted. The tokens of the text
beyond that point were never predicted: they count as unreached, not as wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from giaann_p2p.model.generate import Mind, best, read
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import Name, Row, Steps, abreast, empty_row
from giaann_p2p.model.sequence import Sequences


class Feed(StrEnum):
    """The token that is heard after each prediction: the true or the predicted one."""

    TRUE = "true"
    OWN = "own"


@dataclass
class Score:
    """The counts of an evaluation."""

    sentences: int = 0
    too_short: int = 0
    """The number of sentences without a token after the seed; they do not count."""
    skipped: int = 0
    """The number of sentences that learning skips, too; they do not count."""
    seeded: int = 0
    """The number of tokens heard as seeds."""
    predicted: int = 0
    """The number of positions at which a token was to be predicted."""
    right_words: int = 0
    right_neurons: int = 0
    silent: int = 0
    """The number of positions without a candidate; they count as wrong."""
    unreached: int = 0
    """With feed `own`: the number of tokens beyond the point where nothing was predicted."""
    seconds: float = 0.0
    """The time spent on predicting, in seconds, if the caller measured it."""

    @property
    def accuracy(self) -> float:
        """The share of right words among the positions predicted."""
        return self.right_words / self.predicted if self.predicted else 0.0

    @property
    def neuron_accuracy(self) -> float:
        """The share of right neurons among the positions predicted."""
        return self.right_neurons / self.predicted if self.predicted else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Tokens per second, seeds included; 0 if no time was measured."""
        return (self.seeded + self.predicted) / self.seconds if self.seconds else 0.0


def score_sequence(
    mind: Mind, sequence: Sequences, seed_tokens: int, feed: Feed, score: Score
) -> Steps[None]:
    """Evaluate one sequence on a mind that has heard nothing, and add the counts to the score."""
    names = names_of(sequence)
    if len(names) <= seed_tokens:
        score.too_short += 1
        return
    score.sentences += 1
    score.seeded += seed_tokens
    for seed in (yield from _rows(mind, names[:seed_tokens])):
        mind.hear(seed)
    for at in range(seed_tokens, len(names)):
        row = yield from _predicted(mind)
        if row is None and feed is Feed.OWN:
            score.unreached += len(names) - at
            return
        score.predicted += 1
        score.silent += row is None
        score.right_words += row is not None and row.name.word == names[at].word
        score.right_neurons += row is not None and row.name == names[at]
        if row is None or feed is Feed.TRUE:
            (heard,) = yield from _rows(mind, [names[at]])
        else:
            heard = row
        mind.hear(heard)


def score_sequences(
    minds: Sequence[Mind],
    sequences: Iterable[Sequences],
    seed_tokens: int,
    feed: Feed,
    score: Score,
) -> Steps[None]:
    """Evaluate sequences, as many side by side as there are minds."""
    left = iter(sequences)

    def one(mind: Mind) -> Steps[None]:
        for sequence in left:  # all minds take from this one iterator
            mind.forget()
            yield from score_sequence(mind, sequence, seed_tokens, feed, score)

    yield from abreast([one(mind) for mind in minds])


def names_of(sequence: Sequences) -> list[Name]:
    """Return the names of a sequence's neurons, in order."""
    names = sequence.names
    pairs = zip(sequence.concept.tolist(), sequence.feature.tolist(), strict=True)
    return [Name(names[c], None if f == PRIME else names[f]) for c, f in pairs]


def _predicted(mind: Mind) -> Steps[Row | None]:
    choice = yield from best(mind)
    if choice is None:
        return None
    (row,) = yield from read(mind, [choice.neuron])
    return row


def _rows(mind: Mind, names: list[Name]) -> Steps[list[Row]]:
    neurons = [name.neuron for name in names]
    rows = yield from read(mind, neurons)
    return [row or empty_row(n, name) for row, n, name in zip(rows, neurons, names, strict=True)]
