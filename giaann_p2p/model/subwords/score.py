"""The scores of tokens, as `mix` defines them, in whole numbers of 2^-48 / 10.

P_d(t) / u(t) is the product of two factors: one of the own row, one of the row of any column. So a
score is ln u(t) plus what each of the ten rows adds (see `gain`): a constant for all tokens, and a
gain for each token that followed. These are whole numbers, so they can be added in any order.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.evidence import Pair
from giaann_p2p.model.subwords.frequencies import Frequencies
from giaann_p2p.model.subwords.gain import TENTHS, Gains
from giaann_p2p.model.subwords.tokeniser import VOCABULARY

_FEW, _FEWER = 2_000, 10
"""Searching a row takes as long as adding up 2,000 gains, and 10 more for each token sought."""


def gains_after(rows: Sequence[Pair], frequencies: Frequencies) -> Iterator[Gains]:
    """Yield what each row of the tokens read last adds to scores; the nearest token is first."""
    for distance, (own, anywhere) in enumerate(rows, 1):
        for row, below in ((anywhere, None), (own, anywhere)):
            if row is not None and len((gains := row.gains(distance, below, frequencies)).token):
                yield gains


def scores_of(tokens: Ints, rows: Sequence[Pair], frequencies: Frequencies) -> Ints:
    """Return the score of each of k tokens, which ascend, given the rows of the last tokens."""
    found, bases = TENTHS[0] * frequencies.log.take(tokens), 0
    dense = np.empty(VOCABULARY, np.int64)  # only the entries of the k tokens are ever read
    dense[tokens] = 0
    for base, token, gain in gains_after(rows, frequencies):
        bases += base
        if len(token) > _FEW + _FEWER * len(tokens):
            at = token.searchsorted(tokens)
            followed = token.take(at, mode="clip") == tokens
            found += gain.take(at, mode="clip") * followed
        else:
            np.add.at(dense, token, gain)
    found += dense.take(tokens)
    found += bases
    return found
