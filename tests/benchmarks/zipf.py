"""Text without text: seeded sentences whose words are as frequent as words are.

Word number r of a vocabulary comes with a probability in proportion to 1 / (r + q)^s, nouns by one
law, all others by another. The numbers were chosen beside the King James Bible, 301 chunks of each:

                       increments  distinct  neurons  row length: 50 %  90 %   99 %    most
    Bible                  13.7 M    11.8 M  124,000                38   150  1,075  53,520
    this, of seed 1        12.2 M    10.7 M  132,000                30   105    913  51,076

The largest column holds 4 % and 2 % of all connections, the largest hundred 49 % and 58 %.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.sequence import Ids, Ints, Sequences
from giaann_p2p.model.spec import ModelSpec

SENTENCES = 64
_SPARE = 14
"""Tokens that a sentence has on average, beside the least that make it one."""
_NOUNS = 0.28
"""The part of tokens that are nouns."""
_LETTERS = 5


class Words:
    """A vocabulary, and how frequent its words are."""

    def __init__(self, kind: str, size: int, exponent: float, offset: float) -> None:
        weight = (np.arange(size) + 1 + offset) ** -exponent
        self._sums = np.cumsum(weight) / weight.sum()
        self._kind = kind

    def draw(self, random: np.random.Generator, count: int) -> Ints:
        """Return so many words' numbers."""
        return np.searchsorted(self._sums, random.random(count)).astype(np.int64)

    def text(self, number: int) -> str:
        """Return a word."""
        return f"{self._kind}{number}"


@dataclass(frozen=True)
class Zipf:
    """How often words occur."""

    nouns: Words = field(default_factory=lambda: Words("n", 40_000, 1.5, 18.0))
    others: Words = field(default_factory=lambda: Words("w", 30_000, 1.6, 7.0))

    def chunks(self, spec: ModelSpec, seed: int) -> Iterator[Sequences]:
        """Iterate over chunks of sentences, without an end."""
        random = np.random.default_rng(seed)
        while True:
            yield self._chunk(random, spec)

    def _chunk(self, random: np.random.Generator, spec: ModelSpec) -> Sequences:
        starts = _starts(random, spec)
        noun = random.random(starts[-1]) < _NOUNS
        noun[starts[1:] - 1] = True
        column = _columns(starts, noun)
        concepts, used = self._words(self.nouns, random, int(noun.sum()))
        others, names = self._words(self.others, random, int((~noun).sum()))
        # The token's noun is the next one; a sentence ends in one.
        concept = concepts[np.cumsum(noun) - noun]
        feature = np.full(len(noun), PRIME, np.uint64)
        feature[~noun] = others
        place = np.arange(len(noun)) - np.repeat(starts[:-1], np.diff(starts))
        branch = np.minimum(_repeats(starts, concept, feature), spec.branches - 1)
        ends = (place + 1) * (_LETTERS + 1) - 1
        return Sequences(starts, concept, feature, column, branch, ends, used | names)

    def _words(
        self, words: Words, random: np.random.Generator, count: int
    ) -> tuple[Ids, dict[int, str]]:
        number, at = np.unique(words.draw(random, count), return_inverse=True)
        texts = [words.text(one) for one in number.tolist()]
        ids = np.array([word_id(text) for text in texts], np.uint64)
        return ids[at], dict(zip(ids.tolist(), texts, strict=True))


def _starts(random: np.random.Generator, spec: ModelSpec) -> Ints:
    """Return where sentences start: few are long."""
    more = random.exponential(_SPARE, SENTENCES).astype(np.int64)
    lengths = np.minimum(spec.seed_tokens + 1 + more, spec.max_tokens)
    return np.concatenate([[0], np.cumsum(lengths)])


def _columns(starts: Ints, noun: npt.NDArray[np.bool_]) -> Ints:
    before = np.cumsum(noun) - noun
    return before - np.repeat(before[starts[:-1]], np.diff(starts))


def _repeats(starts: Ints, concept: Ids, feature: Ids) -> Ints:
    """Return how often each token's neuron came before in its sentence."""
    sentence = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((feature, concept, sentence))  # keeps like in their order
    first = first_of_runs(sentence[order])
    first |= first_of_runs(concept[order]) | first_of_runs(feature[order])
    at = np.arange(len(order))
    repeats = np.empty(len(order), np.int64)
    repeats[order] = at - np.maximum.accumulate(np.where(first, at, 0))
    return repeats
