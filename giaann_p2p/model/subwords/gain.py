"""The contribution of a row to scores: logarithms of its counts, as integers, made once per row.

A row followed N times in all, by K distinct tokens, turns the probability p(t) below it into

    (max(N(t) - 0.9, 0) + 0.9 K p(t)) / N  =  p(t) * c * e^gain(t)

    c = 0.9 K / N,    gain(t) = ln(1 + max(N(t) - 0.9, 0) / (0.9 K p(t)))

The gain is 0 for every token that never followed, so a row has only as many gains as it has tokens.
They depend on the row and on p at those tokens. Below a row of any column, p is the frequency u;
below an own row, p is what the row of any column turns u into. `followers` caches them.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.counts import DISCOUNT, Tally
from giaann_p2p.model.subwords.logarithm import LOG_UNITS, Floats, logarithms
from giaann_p2p.model.subwords.spec import DISTANCES

TENTHS = (10, 5, 3, 2, 2)
"""The weight of each distance, in tenths."""
_WEIGHTS = np.array(TENTHS)
SCORE_UNITS = 10 * LOG_UNITS
"""The integer that stands for a score of 1."""


class Gains(NamedTuple):
    """The contribution of a row to scores at one distance, in units of 2^-48 / 10."""

    base: int
    """Added for every token: ln c, with the distance's weight."""
    token: Ints
    """Shape [k]: the tokens that followed, ascending."""
    gain: Ints
    """Shape [k]: added for each of these, too; above 0."""


def gains_of(tally: Tally, below: Floats) -> tuple[Gains, ...]:
    """Return the gains of a row at each distance, given the probability below of its m tokens.

    Where nothing followed, nothing is added: the probability is the one below.
    """
    odds = np.empty(DISTANCES + len(below))  # all logarithms at once is faster
    np.divide(tally.discounts, tally.divisor, out=odds[:DISTANCES])
    raised = odds[DISTANCES:]
    np.subtract(tally.times, DISCOUNT, out=raised)
    raised /= tally.discounts.repeat(tally.distinct) * below
    raised += 1
    logs = logarithms(odds)
    logs[:DISTANCES] *= _WEIGHTS
    gain = logs[DISTANCES:]
    gain *= _WEIGHTS.repeat(tally.distinct)
    ends = zip(logs[:DISTANCES].tolist(), pairwise(tally.starts), strict=True)
    return tuple(Gains(base, tally.token[i:j], gain[i:j]) for base, (i, j) in ends)


def backed_off(tally: Tally, asked: Tally, below: Floats) -> Floats:
    """Return the probabilities that a row gives to the tokens of another row, given those below."""
    found: Floats = np.subtract(tally.of(asked.key), DISCOUNT)
    np.maximum(found, 0.0, out=found)
    found += tally.discounts.repeat(asked.distinct) * below
    found /= tally.divisor.repeat(asked.distinct)
    return found
