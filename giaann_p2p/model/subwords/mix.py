"""The default read-out: counts as conditional probabilities, combined over five distances as odds.

For the tokens x_1 ... x_5 read last, the nearest first, with the counts N_d of what followed x_d at
distance d in its own column, and R_d of the same in any column:

    u(t)     = (occurrences of t + 0.1) / (all occurrences + 0.1 * 200019)
    A_d(t)   = (max(R_d(t) - 0.9, 0) + 0.9 * (distinct tokens of R_d) * u(t)) / (sum of R_d)
    P_d(t)   = (max(N_d(t) - 0.9, 0) + 0.9 * (distinct tokens of N_d) * A_d(t)) / (sum of N_d)
    score(t) = ln P_1(t) + sum of a_d ln(P_d(t) / u(t))  for d = 2 ... 5, a = 0.5, 0.3, 0.2, 0.2

Where nothing followed, A_d is u, and P_d is A_d. Candidates are the tokens that ever followed x_1.
If any own row has at most two followers, and some tokens followed in all five own rows, only these
tokens are candidates: that is recall. Without candidates, ln u of every token that occurred is its
score, so the most frequent one is the best. Ties go to the smaller token.

A choice is a function of the last five tokens and their rows. Probabilities are computed in
operations that every machine rounds alike, and scores are whole numbers (see `logarithm`), so every
machine makes the same choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.manner import Sampling
from giaann_p2p.model.rows import Neuron
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.counts import NOTHING, common
from giaann_p2p.model.subwords.evidence import Evidence, Pair, Place
from giaann_p2p.model.subwords.followers import Followers
from giaann_p2p.model.subwords.gain import SCORE_UNITS, TENTHS
from giaann_p2p.model.subwords.sample import drawn, odds, penalised
from giaann_p2p.model.subwords.score import scores_of
from giaann_p2p.model.subwords.spec import DISTANCES

_FEW = 2
"""With at most this many followers, an own row remembers one or two texts."""


class TokenChoice(NamedTuple):
    """A chosen token."""

    token: int
    score: int
    """In units of 2^-48 / 10; differences are logarithms of odds."""
    candidates: int
    """The number of candidates; 0 if there was no evidence."""
    basis: Basis
    probability: float
    """Its odds as a share of all candidates' odds."""
    rivals: tuple[tuple[int, float], ...] = ()
    """The best candidates, the best first, each with that share, if they were asked for."""

    @property
    def log_odds(self) -> float:
        """The score, in units of 1."""
        return self.score / SCORE_UNITS


class Draw(NamedTuple):
    """How to draw one token of an answer."""

    sampling: Sampling
    number: int
    """The number of tokens of the answer before it."""
    read: Sequence[int]
    """The tokens of the prompt and of the answer before it, in order."""


BEST = Draw(Sampling(), 0, ())
"""The draw that takes the best token."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The tokens that may come next, k in all, before one of them is chosen."""

    token: Ints
    """Shape [k]: the tokens, ascending."""
    score: Ints
    """Shape [k]: scores in units of 2^-48 / 10; without evidence, how often each token occurred."""
    basis: Basis

    @cached_property
    def best(self) -> int:
        """The token with the highest score; ties go to the smallest."""
        return int(self.token[self.score.argmax()])

    def rank(self, token: int) -> int | None:
        """Return how many candidates come before a token; None if it is not a candidate."""
        at = int(self.token.searchsorted(token))
        if at == len(self.token) or self.token[at] != token:
            return None
        mine = self.score[at]  # of equal scores the smaller token comes first
        return int(np.count_nonzero(self.score > mine) + np.count_nonzero(self.score[:at] == mine))


def candidates_after(evidence: Evidence, last: Sequence[Place]) -> Candidates | None:
    """Return the candidates after the tokens read last, the nearest first, whose rows were read.

    None only if nothing was learned at all.
    """
    occurrences = evidence.occurrences
    if not occurrences.total:
        return None
    rows = evidence.rows_of(last)
    followed = _followers(rows[0].anywhere) if rows else NOTHING.token
    if not len(followed):
        return Candidates(occurrences.token, occurrences.times, Basis.NONE)
    recalled = _recalled(rows)
    tokens = recalled if len(recalled) else followed
    known = len(_followers(rows[0].own)) > 0
    basis = Basis.RECALL if len(recalled) else Basis.OWN if known else Basis.ANY
    return Candidates(tokens, scores_of(tokens, rows, evidence.frequencies), basis)


def mix(evidence: Evidence, last: Sequence[Place], draw: Draw = BEST) -> TokenChoice | None:
    """Choose the token after those read last, the nearest first, whose rows were read.

    None only if nothing was learned at all.
    """
    found = candidates_after(evidence, last)
    return None if found is None else chosen(evidence, found, draw)


def chosen(evidence: Evidence, candidates: Candidates, draw: Draw = BEST) -> TokenChoice:
    """Choose one of the candidates."""
    tokens, basis = candidates.token, candidates.basis
    no_evidence = basis is Basis.NONE
    scores = TENTHS[0] * evidence.frequencies.log[tokens] if no_evidence else candidates.score
    scores = penalised(tokens, scores, draw.read, draw.sampling)
    at = drawn(tokens, scores, draw.sampling, draw.number)
    if no_evidence:
        token, share = int(tokens[at]), float(evidence.frequencies.share[tokens[at]])
        return TokenChoice(token, int(scores[at]), 0, basis, share)
    shares = odds(scores)
    total = int(shares.sum())
    most = draw.sampling.rivals
    best = np.argsort(-scores, kind="stable")[:most] if most else NOTHING.token
    return TokenChoice(
        int(tokens[at]),
        int(scores[at]),
        len(tokens),
        basis,
        int(shares[at]) / total,
        tuple((int(tokens[one]), int(shares[one]) / total) for one in best.tolist()),
    )


def _followers(row: Followers | None) -> Ints:
    return NOTHING.token if row is None else row.counts(1).token


def _recalled(rows: Sequence[Pair]) -> Ints:
    """Return the tokens that followed in all five own rows; none unless a row has few followers."""
    own = [pair.own.tally for pair in rows if pair.own is not None]
    few = any(tally.size(distance) <= _FEW for distance, tally in enumerate(own, 1))
    if len(own) < DISTANCES or not few:
        return NOTHING.token
    followed = [tally.counts(distance).token for distance, tally in enumerate(own, 1)]
    found, *others = sorted(followed, key=len)
    for other in others:
        found = found[common(found, other)[0]]
    return found


def place_of(evidence: Evidence, token: int, last: Sequence[Place]) -> Place | None:
    """Return the token's neuron that followed most often in the own rows of the last tokens.

    None if no own row leads to the token. Ties go to the smaller neuron, the prime one first.
    """
    hits: dict[tuple[int, int], int] = {}
    for distance, (own, _) in enumerate(evidence.rows_of(last), 1):
        if own is not None:
            for neuron, times in own.times_of(token, distance):
                hits[neuron] = hits.get(neuron, 0) + times
    most = max(hits.values(), default=0)
    best = (evidence.place_of(Neuron(*neuron)) for neuron, times in hits.items() if times == most)
    named = [place for place in best if place is not None and place.home is not None]
    return min(named, key=lambda place: (place.home, not place.prime), default=None)
