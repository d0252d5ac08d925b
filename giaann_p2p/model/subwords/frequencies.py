"""How frequent each token is in all that was learned, as a share and as a part of scores."""

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.counts import NOTHING, Counts
from giaann_p2p.model.subwords.logarithm import Floats, logarithms
from giaann_p2p.model.subwords.tokeniser import VOCABULARY

ADDED = 0.1
"""Added to the occurrences of each token, so that none is impossible."""


@dataclass(frozen=True, eq=False)
class Frequencies:
    """The frequency u of each token of the vocabulary.

    A look-up in these long arrays is faster than many searches in short ones.
    """

    share: Floats
    """Shape [VOCABULARY]: u, never 0; they add up to 1."""
    log: Ints
    """Shape [VOCABULARY]: ln u, in units of 2^-48."""
    version: object = field(default_factory=object)
    """Equal only to itself; keeping it does not keep the arrays in memory."""


def frequencies_of(occurrences: Counts) -> Frequencies:
    """Return u(t) = (occurrences of t + 0.1) / (all occurrences + 0.1 * 200019) for each token."""
    total = occurrences.total + ADDED * VOCABULARY
    share = np.full(VOCABULARY, ADDED / total)
    log = np.full(VOCABULARY, int(logarithms(share[:1])[0]))
    share[occurrences.token] = (occurrences.times + ADDED) / total
    log[occurrences.token] = logarithms(share[occurrences.token])
    return Frequencies(share, log)


@cache
def uniform() -> Frequencies:
    """Return the frequencies before anything was learned: all tokens are equal."""
    return frequencies_of(NOTHING)
