"""How often each token followed a row's neuron: at all five distances, or at one of them."""

from typing import NamedTuple

import numpy as np

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.logarithm import Floats
from giaann_p2p.model.subwords.spec import DISTANCES

TOKENS = 1 << 18
"""A power of two above the number of tokens: a distance and three tokens make 57 bits."""
DISCOUNT = 0.9
"""Taken from each count, so that some probability is left for what never followed."""
_STARTS = np.arange(1, DISTANCES + 2) * TOKENS
_LOW_BITS = 16


class Counts(NamedTuple):
    """How often tokens followed a row's neuron at one distance."""

    token: Ints
    """Shape [k]: the tokens, ascending and distinct."""
    times: Ints
    """Shape [k]: how often each followed; above 0."""
    total: int
    """The sum of the counts."""


NOTHING = Counts(np.empty(0, np.int64), np.empty(0, np.int64), 0)


class Tally(NamedTuple):
    """How often tokens followed a row's neuron at all distances, computed together."""

    key: Ints
    """Shape [m]: distance * TOKENS + token, ascending and distinct."""
    token: Ints
    """Shape [m]: the tokens."""
    times: Ints
    """Shape [m]: how often each token followed at its distance; above 0."""
    starts: list[int]
    """Shape [DISTANCES + 1]: where each distance starts, and the end."""
    distinct: Ints
    """Shape [DISTANCES]: K, how many tokens followed at each distance."""
    total: Ints
    """Shape [DISTANCES]: N, the sum of their counts."""
    divisor: Ints
    """Shape [DISTANCES]: N; 1 where nothing followed."""
    discounts: Floats
    """Shape [DISTANCES]: 0.9 K, what is taken from the counts; 1 where nothing followed."""

    def counts(self, distance: int) -> Counts:
        """Return the counts at a distance."""
        start, end = self.starts[distance - 1], self.starts[distance]
        return Counts(self.token[start:end], self.times[start:end], self.total.item(distance - 1))

    def size(self, distance: int) -> int:
        """Return how many tokens followed at a distance."""
        return self.starts[distance] - self.starts[distance - 1]

    def of(self, key: Ints) -> Ints:
        """Return how often each key's token followed at its distance; 0 if it never did."""
        if not len(self.key):
            return np.zeros(len(key), np.int64)
        at = self.key.searchsorted(key)
        found: Ints = self.times.take(at, mode="clip")
        found *= self.key.take(at, mode="clip") == key
        return found


def tallied(key: Ints, times: Ints) -> Tally:
    """Return the tally of n connections, [n] each, in any order; a key may come several times."""
    order = _order(key)
    key, times = key.take(order), times.take(order)
    starts = first_of_runs(key).nonzero()[0]
    if len(starts) < len(key):
        key, times = key.take(starts), np.add.reduceat(times, starts)
    starts, before = key.searchsorted(_STARTS), np.zeros(len(key) + 1, np.int64)
    times.cumsum(out=before[1:])
    before = before.take(starts)
    distinct, total = starts[1:] - starts[:-1], before[1:] - before[:-1]
    none = distinct == 0
    sums = distinct, total, total + none, DISCOUNT * distinct + none
    return Tally(key, key & (TOKENS - 1), times, starts.tolist(), *sums)


def _order(key: Ints) -> Ints:
    """Return the order of numbers below 2^24, in two sorts: numpy's radix sort takes 16 bits."""
    order = key.astype(np.uint16).argsort(kind="stable")
    high = (key >> _LOW_BITS).astype(np.uint8).take(order)
    return order.take(high.argsort(kind="stable"))


def common(one: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Return the positions of the numbers that both arrays have: in `one`, and in `other`.

    The numbers of each array ascend and are distinct.
    """
    if len(other) < len(one):  # look up the shorter array's
        at = one.searchsorted(other)
        hits = np.flatnonzero(one.take(at, mode="clip") == other)
        return at[hits], hits
    at = other.searchsorted(one)
    hits = np.flatnonzero(other.take(at, mode="clip") == one)
    return hits, at[hits]
