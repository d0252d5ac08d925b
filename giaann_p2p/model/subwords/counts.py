"""How often tokens followed a row's neuron: at all five distances, and at one of them."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.spec import DISTANCES

TOKENS = 1 << 18
"""More than there are tokens: a distance and three tokens make one number of 57 bits."""
_STARTS = np.arange(1, DISTANCES + 2) * TOKENS


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
    """How often tokens followed a row's neuron at all distances: each step is done once for all."""

    key: Ints
    """Shape [m]: distance * TOKENS + token, ascending and distinct."""
    token: Ints
    """Shape [m]: the tokens."""
    times: Ints
    """Shape [m]: how often each token followed at its distance; above 0."""
    starts: list[int]
    """Shape [DISTANCES + 1]: where each distance starts, and the end."""
    distinct: Ints
    """Shape [DISTANCES]: how many tokens followed at each distance."""
    total: Ints
    """Shape [DISTANCES]: the sum of their counts."""

    def counts(self) -> list[Counts]:
        """Return the counts at each distance."""
        ends = zip(pairwise(self.starts), self.total.tolist(), strict=True)
        return [Counts(self.token[i:j], self.times[i:j], total) for (i, j), total in ends]

    def of(self, key: Ints) -> Ints:
        """Return how often tokens followed at distances; the keys ascend, and are distinct."""
        found = np.zeros(len(key), np.int64)
        at, there = common(key, self.key)
        found[at] = self.times[there]
        return found


def tallied(distance: Ints, token: Ints, times: Ints) -> Tally:
    """Return the tally of neurons by distance and token, in this order, of shape [n] each.

    Targets that are not tokens, and strengths below one occurrence, are ignored: only a lying peer
    sends them.
    """
    if len(token) and (token.min() < 0 or times.min() < 1):
        honest = np.flatnonzero((token >= 0) & (times > 0))
        distance, token, times = distance[honest], token[honest], times[honest]
    key = distance * TOKENS + token
    first = np.flatnonzero(first_of_runs(key))
    if len(first) < len(key):
        key, token, times = key[first], token[first], np.add.reduceat(times, first)
    starts, sums = key.searchsorted(_STARTS), np.zeros(len(key) + 1, np.int64)
    np.cumsum(times, out=sums[1:])
    return Tally(key, token, times, starts.tolist(), np.diff(starts), np.diff(sums[starts]))


def common(one: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Return where the numbers are that both have: in the one, and in the other.

    Both ascend, and are distinct.
    """
    if len(other) < len(one):  # look up the fewer ones
        at = one.searchsorted(other)
        hits = np.flatnonzero(one.take(at, mode="clip") == other)
        return at[hits], hits
    at = other.searchsorted(one)
    hits = np.flatnonzero(other.take(at, mode="clip") == one)
    return hits, at[hits]
