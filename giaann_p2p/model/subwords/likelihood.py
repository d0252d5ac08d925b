"""The probability that the counts give to a token: `mix` as a distribution over all tokens.

P(t) is in proportion to exp(score(t)), for each of the 200,019 tokens, with the score of `mix`. It
needs no candidates: a token that never followed x_1 has a score, too, because every P_d backs off
to the frequency u. The rule of recall is left out. It makes all but a few tokens impossible, so one
surprise would cost infinitely many bits.

The sum over all tokens is exact without a loop over them. Where a token never followed x_d, P_d is
a constant c_d times u, so the score is ln u plus a constant that all such tokens share. For others
it is more, by

    gain(t) = sum of a_d ln(P_d(t) / (c_d u(t)))  for d = 1 ... 5, a = 1, 0.5, 0.3, 0.2, 0.2
    P(t)    = u(t) exp(gain(t)) / (1 + sum of u(s) (exp(gain(s)) - 1) over all s that followed)

because u adds up to 1 and the constants cancel. This is for measuring, not for choosing: these
logarithms are the machine's own, and may differ in their last bits.
"""

from collections.abc import Sequence

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.evidence import Counts, Evidence, Place
from giaann_p2p.model.subwords.logarithm import Floats
from giaann_p2p.model.subwords.mix import counts_after
from giaann_p2p.model.subwords.score import DISCOUNT, TENTHS
from giaann_p2p.model.subwords.tokeniser import VOCABULARY


def log_probability(evidence: Evidence, last: Sequence[Place], token: int) -> float:
    """Return ln P of a token after those read last, the nearest first, whose rows were read."""
    asked = np.array([token])
    return float(log_probabilities(evidence, last, asked)[0])


def log_probabilities(evidence: Evidence, last: Sequence[Place], tokens: Ints) -> Floats:
    """Return ln P of several tokens."""
    gain, raised = np.zeros(VOCABULARY), np.zeros(VOCABULARY, np.bool_)
    u = evidence.frequency
    for weight, own, anywhere in zip(TENTHS, *counts_after(evidence, last), strict=False):
        followed = anywhere.token  # what followed in the own column followed in any, too
        raised[followed] = True
        gain[followed] += weight / TENTHS[0] * np.log1p(_raise(own, anywhere, u(followed)))
    some = np.flatnonzero(raised)
    total = 1 + u(some) @ np.expm1(gain[some])
    found: Floats = np.log(u(tokens)) + gain[tokens] - np.log(total)
    return found


def _raise(own: Counts, anywhere: Counts, u: Floats) -> Floats:
    """Return P_d(t) / (c_d u(t)) - 1 for the tokens t that followed in any column.

    A_d is (0.9 T u / R) (1 + (R(t) - 0.9) / (0.9 T u)), where T distinct tokens followed R times in
    all. P_d backs off to A_d in the same way, so its part is divided by both constants.
    """
    if not anywhere.total:
        return u
    below = DISCOUNT * len(anywhere.token)
    found: Floats = (anywhere.times - DISCOUNT) / (below * u)
    if own.total:
        constant = DISCOUNT * len(own.token) * below / anywhere.total
        found += np.maximum(own.of(anywhere.token) - DISCOUNT, 0.0) / (constant * u)
    return found
