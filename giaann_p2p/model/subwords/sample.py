"""Draws a token by its probability: the same on every machine, for the same seed.

1. Each token that was read lately loses the logarithm of the repetition penalty.
2. Scores are divided by the temperature. Only the best `top_k` are left, and of these the fewest of
   the best that together have the share `top_p` of all odds.
3. Each one left gets noise of its own, a number with Gumbel's distribution, and the greatest sum
   wins: so a token's chance is its share of the odds (the "Gumbel-max trick").

The noise is a function of the seed, the number of the token in the answer, and the token. So an
answer that one peer begins and another continues is the same, and so is one on another machine,
because only whole numbers are compared.
"""

from collections.abc import Sequence

import numpy as np

from giaann_p2p.model.manner import Sampling
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.logarithm import LOG_UNITS, exponentials, logarithms

RECENT = 64
"""How many of the tokens read last are subject to the repetition penalty."""
_TENTHS = 10
"""Scores are in units of 2^-48 / 10."""
_LEAST_HEAT, _LOWEST = 2.0**-60, -(1 << 58)
"""A token this far below the best one is never drawn: noise spans less than 2^54. So all scores as
low count as equal, and at low temperatures none exceeds the range of whole numbers."""
_ODDS_BITS = 40
"""Odds are compared as whole numbers, in units of 2^-40 of the best one's."""
_MIX_1, _MIX_2, _STEP = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def odds(scores: Ints) -> Ints:
    """Return the odds of scores, as whole numbers; the best one's are 2^40."""
    found: Ints = np.rint(exponentials((scores - scores.max()) // _TENTHS) * (1 << _ODDS_BITS))
    return found.astype(np.int64)


def penalised(tokens: Ints, scores: Ints, read: Sequence[int], sampling: Sampling) -> Ints:
    """Return the scores after the repetition penalty, given the tokens read so far."""
    if sampling.repetition_penalty == 1 or not read:
        return scores
    loss = _TENTHS * int(logarithms(np.array([sampling.repetition_penalty], np.float64))[0])
    found: Ints = scores - loss * np.isin(tokens, read[-RECENT:])
    return found


def drawn(tokens: Ints, scores: Ints, sampling: Sampling, number: int) -> int:
    """Return the index of the token that becomes the answer's token `number`; tokens ascend."""
    if not sampling.temperature:
        return int(scores.argmax())
    heat = max(_TENTHS * sampling.temperature, _LEAST_HEAT)
    logs = np.rint(np.maximum((scores - scores.max()) / heat, _LOWEST)).astype(np.int64)
    order = np.argsort(-logs, kind="stable")
    if sampling.top_k:
        order = order[: sampling.top_k]
    if sampling.top_p < 1:
        sums = np.cumsum(odds(_TENTHS * logs[order]))
        order = order[: 1 + int(np.searchsorted(sums, sampling.top_p * sums[-1]))]
    noise = _gumbel(tokens[order], sampling.seed, number)
    return int(order[(logs[order] + noise).argmax()])


def _gumbel(tokens: Ints, seed: int, number: int) -> Ints:
    """Return noise for tokens with Gumbel's distribution, in units of 2^-48."""
    start = np.uint64(_mixed(seed ^ _mixed(number + 1)))
    x = tokens.astype(np.uint64) * np.uint64(_STEP) + start
    x = (x ^ (x >> np.uint64(30))) * np.uint64(_MIX_1)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(_MIX_2)
    x ^= x >> np.uint64(31)
    uniform = ((x >> np.uint64(12)) | np.uint64(1)) / (1 << 52)  # above 0 and below 1
    surprise = np.maximum(-logarithms(uniform), 1)  # in whole units, it may be rounded to 0
    return -logarithms(surprise / LOG_UNITS)


def _mixed(x: int) -> int:
    """Return a number of 64 bits that looks random, mixed like those in `_gumbel`."""
    x = (x ^ (x >> 30)) * _MIX_1 & _WORD
    x = (x ^ (x >> 27)) * _MIX_2 & _WORD
    return x ^ (x >> 31)
