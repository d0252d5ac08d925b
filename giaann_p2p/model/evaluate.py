"""How well a brain knows a text: top-1 accuracy on the tokens after the seed, and recall.

Every sentence with more than S tokens counts. Its first S are the seed; then each further token is
predicted, and either the true one is taken in (feed `true`) or the predicted one (`own`). A word is
right when it is the true word, whatever its column; right neurons are counted, too.

With its own tokens a sentence may come to an end where nothing is predicted. What the text has
beyond that point was never predicted: it counts as unreached, not as wrong.
"""

from dataclasses import dataclass
from enum import StrEnum

from giaann_p2p.model.generate import Mind, best, read
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import Name, Row, Steps, empty_row
from giaann_p2p.model.sequence import Sequences


class Feed(StrEnum):
    """What is taken in after each prediction."""

    TRUE = "true"
    OWN = "own"


@dataclass
class Score:
    """The counts of an evaluation."""

    sentences: int = 0
    seeded: int = 0
    """Tokens taken in as seeds."""
    predicted: int = 0
    """Positions at which a prediction was due."""
    right_words: int = 0
    right_neurons: int = 0
    silent: int = 0
    """Positions at which there was no candidate; they are wrong."""
    unreached: int = 0
    """Tokens beyond the end that its own tokens brought."""
    seconds: float = 0.0
    """Time spent on predicting, where somebody measured it."""

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
        """All tokens taken in or predicted, by the time that took."""
        return (self.seeded + self.predicted) / self.seconds if self.seconds else 0.0


def score_sequence(
    mind: Mind, sequence: Sequences, seed_tokens: int, feed: Feed, score: Score
) -> Steps[None]:
    """Evaluate one sequence on a mind that has heard nothing, and add to the score."""
    names = names_of(sequence)
    if len(names) <= seed_tokens:
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


def names_of(sequence: Sequences) -> list[Name]:
    """Return the neurons of a sequence by name."""
    names = sequence.names
    pairs = zip(sequence.concept.tolist(), sequence.feature.tolist(), strict=True)
    return [Name(names[c], None if f == PRIME else names[f]) for c, f in pairs]


def _predicted(mind: Mind) -> Steps[Row | None]:
    choice = best(mind)
    if choice is None:
        return None
    (row,) = yield from read(mind, [choice.neuron])
    return row


def _rows(mind: Mind, names: list[Name]) -> Steps[list[Row]]:
    neurons = [name.neuron for name in names]
    rows = yield from read(mind, neurons)
    return [row or empty_row(n, name) for row, n, name in zip(rows, neurons, names, strict=True)]
