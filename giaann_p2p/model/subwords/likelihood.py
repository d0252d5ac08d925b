"""The probability that the counts give to a token: `mix` as a distribution over all tokens.

P(t) is in proportion to exp(score(t)), for each of the 200,019 tokens, with the score of `mix`. It
needs no candidates: a token that never followed x_1 has a score, too, because every P_d backs off
to the frequency u. The rule of recall is left out. It makes all but a few tokens impossible, so one
surprise would cost infinitely many bits.

The sum over all tokens is exact without a loop over them. The score is ln u(t), plus what is the
same for all tokens, plus gain(t), which is 0 for a token that never followed (see `score`). So

    P(t) = u(t) exp(gain(t)) / (1 + sum of u(s) (exp(gain(s)) - 1) over all s that followed)

because u adds up to 1. This is for measuring, not for choosing: gains are whole numbers, but powers
and the last logarithm are the machine's own, and may differ in their last bits.
"""

from collections.abc import Sequence

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.evidence import Evidence, Place
from giaann_p2p.model.subwords.gain import SCORE_UNITS
from giaann_p2p.model.subwords.logarithm import LOG_UNITS, Floats
from giaann_p2p.model.subwords.score import gains_after
from giaann_p2p.model.subwords.tokeniser import VOCABULARY


def log_probability(evidence: Evidence, last: Sequence[Place], token: int) -> float:
    """Return ln P of a token after those read last, the nearest first, whose rows were read."""
    asked = np.array([token])
    return float(log_probabilities(evidence, last, asked)[0])


def log_probabilities(evidence: Evidence, last: Sequence[Place], tokens: Ints) -> Floats:
    """Return ln P of several tokens."""
    frequencies, gained = evidence.frequencies, np.zeros(VOCABULARY, np.int64)
    followed = np.zeros(VOCABULARY, np.bool_)
    for _, token, gain in gains_after(evidence.rows_of(last), frequencies):
        followed[token] = True
        gained[token] += gain
    some = np.flatnonzero(followed)
    total = 1 + frequencies.share[some] @ np.expm1(gained[some] / SCORE_UNITS)
    log: Floats = frequencies.log[tokens] / LOG_UNITS + gained[tokens] / SCORE_UNITS
    return log - np.log(total)
