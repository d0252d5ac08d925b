"""The scores of candidates, as `mix` defines them, in whole numbers of 2^-48 / 10.

Of most candidates nothing is known at most distances. All of them have the same odds P_d / u there,
so only one logarithm is taken for these, and one for each candidate of which something is known.
"""

from collections.abc import Sequence

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.evidence import Counts
from giaann_p2p.model.subwords.logarithm import Floats, logarithms

DISCOUNT = 0.9
TENTHS = (10, 5, 3, 2, 2)
"""The weight of each distance, in tenths."""


def scores_of(tokens: Ints, own: Sequence[Counts], anywhere: Sequence[Counts], u: Floats) -> Ints:
    """Return the score of each of k tokens, which ascend, given their frequencies u; shape [k].

    `own` and `anywhere` say what followed the last tokens in their columns and in any, the nearest
    first.
    """
    known = [_nearest(tokens, own[0], anywhere[0], u)]
    known += [_farther(tokens, *counts, u) for counts in zip(own[1:], anywhere[1:], strict=True)]
    logs = logarithms(np.concatenate([odds for _, odds in known]))  # all at once is faster
    found = TENTHS[0] * logs[: len(tokens)]
    end = len(tokens)
    for tenths, (at, odds) in zip(TENTHS[1:], known[1:], strict=False):
        start, end = end, end + len(odds)
        unseen = int(logs[start])
        found += tenths * unseen
        found[at] += tenths * (logs[start + 1 : end] - unseen)
    return found


def _nearest(tokens: Ints, own: Counts, anywhere: Counts, u: Floats) -> tuple[Ints, Floats]:
    """Return the tokens, and P_1 of each."""
    times = anywhere.times if tokens is anywhere.token else anywhere.of(tokens)
    return tokens, _backed_off(own, own.of(tokens), _backed_off(anywhere, times, u))


def _farther(tokens: Ints, own: Counts, anywhere: Counts, u: Floats) -> tuple[Ints, Floats]:
    """Return which tokens followed; and P_d / u of one that did not, then of each that did."""
    at, times = anywhere.among(tokens)  # what followed in the own column followed in any, too
    odds = np.empty(1 + len(at))
    odds[0] = _unseen(own) * _unseen(anywhere)
    if len(at):
        u = u[at]
        odds[1:] = _backed_off(own, own.of(tokens[at]), _backed_off(anywhere, times, u)) / u
    return at, odds


def _unseen(counts: Counts) -> float:
    """Return the share of the probability below that a token has which never followed."""
    return DISCOUNT * len(counts.token) / counts.total if counts.total else 1.0


def _backed_off(counts: Counts, times: Ints, below: Floats) -> Floats:
    """Return the probability of each token, with some of it given to what never followed."""
    if not counts.total:
        return below
    seen: Floats = np.maximum(times - DISCOUNT, 0.0)
    return (seen + DISCOUNT * len(counts.token) * below) / counts.total
