"""Interpolated Kneser-Ney n-grams over tokens: a yardstick for what counts can know of a text.

With c(h w) times that the tokens h were followed by w, and a discount D:

    P(w | h) = max(c(h w) - D, 0) / c(h .) + D * (distinct w after h) / c(h .) * P(w | h'),

where h' is h without its first token. Below the highest order, c counts not how often h w occurred
but how many different tokens came before it. After no token at all, the rest goes to all tokens of
the vocabulary alike. Where h was never followed, P(w | h) is P(w | h').

The grams of all lengths are kept as sorted arrays. The key of a gram is the number of the gram
without its last token, and that token; so what followed a gram is one slice.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.logarithm import Floats
from giaann_p2p.model.subwords.tokeniser import VOCABULARY

_BITS = 18
"""A token has 18 bits."""
DISCOUNTS = (0.75, 0.9)


class Level(NamedTuple):
    """All distinct grams of one length, g in all."""

    key: Ints
    """Shape [g]: ascending. A gram's number is its place here."""
    times: Ints
    """Shape [g]: how often each occurred."""
    befores: Ints
    """Shape [g]: how many different tokens came before each."""

    def number(self, before: int, token: int) -> int:
        """Return the number of a gram, given that of the gram without its last token; or -1."""
        key = before << _BITS | token
        at = int(self.key.searchsorted(key))
        return at if at < len(self.key) and self.key[at] == key else -1


class Grams:
    """The grams of texts, up to a length."""

    def __init__(self, texts: Iterable[Sequence[int]], longest: int) -> None:
        parts = [np.array(text, np.int64) for text in texts if len(text)]
        token = np.concatenate([*parts, np.empty(0, np.int64)])
        place = np.concatenate([*(np.arange(len(part)) for part in parts), np.empty(0, np.int64)])
        self.levels: list[Level] = []
        number = np.zeros(len(token), np.int64)  # [N]: the gram that ends at each token
        for length in range(1, longest + 1):
            ends = np.flatnonzero(place >= length - 1)
            before = number[ends - 1] if length > 1 else 0
            key, first, inverse, times = np.unique(
                before << _BITS | token[ends],
                return_index=True,
                return_inverse=True,
                return_counts=True,
            )
            if self.levels:  # each distinct gram came before its own end once
                shorter = number[ends[first]]
                self.levels[-1].befores[:] = np.bincount(
                    shorter, minlength=len(self.levels[-1].key)
                )
            self.levels.append(Level(key, times, np.zeros(len(key), np.int64)))
            number = np.full(len(token), -1)
            number[ends] = inverse

    @property
    def nbytes(self) -> int:
        """The size of the arrays, in bytes."""
        return sum(array.nbytes for level in self.levels for array in level)


class Followers(NamedTuple):
    """What followed some tokens, k distinct tokens in all."""

    token: Ints
    """Shape [k]: ascending."""
    count: Ints
    """Shape [k]."""


class KneserNey:
    """The probabilities of one order and discount."""

    def __init__(self, grams: Grams, order: int, discount: float) -> None:
        self._grams, self.order, self.discount = grams, order, discount

    def __repr__(self) -> str:
        return f"<KneserNey of order {self.order}, discount {self.discount}>"

    def probability(self, context: Sequence[int], token: int) -> float:
        """Return the probability of a token after others."""
        return float(self.probabilities(context, np.array([token]))[0])

    def probabilities(self, context: Sequence[int], tokens: Ints) -> Floats:
        """Return the probability of each of some tokens after others."""
        return self._backed_off(self._followers(context), tokens)

    def best(self, context: Sequence[int], most: int = 1) -> list[int]:
        """Return the most probable tokens after others, of equals the smaller first."""
        return self._best(self._followers(context), most)

    def best_and_log(
        self, context: Sequence[int], token: int, most: int
    ) -> tuple[list[int], float]:
        """Return the most probable tokens after others, and the logarithm of one's probability."""
        followers = self._followers(context)
        probability = float(self._backed_off(followers, np.array([token]))[0])
        return self._best(followers, most), math.log(probability)

    def _best(self, followers: Sequence[Followers], most: int) -> list[int]:
        """Choose among what ever followed the last token, and what is most probable after nothing.

        Of what never followed it, no other token can be more probable than the latter.
        """
        seen = followers[0].token if followers else self._usual[:0]
        tokens = np.union1d(seen, self._usual[:most])
        order = np.argsort(-self._backed_off(followers, tokens), kind="stable")
        return list(map(int, tokens[order[:most]]))

    def _followers(self, context: Sequence[int]) -> list[Followers]:
        """Return what followed the last 0, 1, 2 ... tokens of a context, as far as anything did."""
        found = []
        for length in range(1, min(len(context), self.order - 1) + 1):
            number = 0
            for level, token in zip(self._grams.levels, context[-length:], strict=False):
                number = level.number(number, token)
                if number < 0:
                    return found
            found.append(self._after(length, number))
        return found

    def _after(self, length: int, number: int) -> Followers:
        level = self._grams.levels[length]
        first, end = level.key.searchsorted([number << _BITS, (number + 1) << _BITS]).tolist()
        counts = level.times if length + 1 == self.order else level.befores
        return Followers(level.key[first:end] & ((1 << _BITS) - 1), counts[first:end])

    def _backed_off(self, followers: Sequence[Followers], tokens: Ints) -> Floats:
        found = self._alone[tokens]
        for one in followers:
            found = self._discounted(one, tokens, found)
        return found

    def _discounted(self, followers: Followers, tokens: Ints, below: Floats) -> Floats:
        total = int(followers.count.sum())
        if not total:
            return below
        at = followers.token.searchsorted(tokens)
        known = followers.token.take(at, mode="clip") == tokens
        count = followers.count.take(at, mode="clip") * known
        rest = self.discount * np.count_nonzero(followers.count)
        found: Floats = (np.maximum(count - self.discount, 0.0) + rest * below) / total
        return found

    @cached_property
    def _alone(self) -> Floats:
        """The probability of each token after nothing, of shape [VOCABULARY]."""
        alike, level = np.full(VOCABULARY, 1 / VOCABULARY), self._grams.levels[0]
        counts = level.times if self.order == 1 else level.befores
        return self._discounted(Followers(level.key, counts), np.arange(VOCABULARY), alike)

    @cached_property
    def _usual(self) -> Ints:
        """All tokens, in the order of what follows nothing."""
        return np.argsort(-self._alone, kind="stable")
