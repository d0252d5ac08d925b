"""One row as counts: which tokens followed its neuron at each distance, and what it adds to scores.

Derived values are cached with the row. The logarithms depend on other rows, too: on the frequencies
and, for an own row, on the row of its token in any column. They are kept together with the versions
of these in one immutable tuple. So a thread that reads the tuple while another one replaces it gets
the logarithms of one version or of the other, and never uses those of a version for which it did
not ask.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import Row
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import ModelSpec, increment
from giaann_p2p.model.subwords.counts import TOKENS, Counts, Tally, tallied
from giaann_p2p.model.subwords.frequencies import Frequencies, frequencies_of
from giaann_p2p.model.subwords.gain import Gains, backed_off, gains_of
from giaann_p2p.model.subwords.spec import DISTANCES
from giaann_p2p.model.subwords.tokeniser import Tokeniser

_INCREMENTS = np.array([1, *(increment(distance) for distance in range(1, DISTANCES + 1))])
_PRIME = np.uint64(PRIME)
_MOST_FREQUENT = 8
"""The number of followers that are considered for prefetching."""


class Targets(NamedTuple):
    """The neurons that followed a row's neuron at one distance, m in all, in the row's order."""

    home: Ints
    """Shape [m]: the concept token of its column; -1 in a row that ignores columns."""
    feature: Ints
    """Shape [m]: its feature as a token; -1 for the prime feature."""
    times: Ints
    """Shape [m]: how often each followed."""


class _Near(NamedTuple):
    """The connections by distance in tokens, m in all, in the row's order."""

    key: Ints
    """Shape [m]: distance * TOKENS + token."""
    at: Ints
    """Shape [m]: the index of the target."""
    times: Ints
    """Shape [m]: how often it followed."""


class _Kept(NamedTuple):
    """The gains at each distance, and the versions of what they were computed from."""

    below: object
    frequencies: object
    gains: tuple[Gains, ...]


class Followers:
    """One row, as counts, which are computed when they are first needed."""

    def __init__(self, row: Row, spec: ModelSpec, known: Tokeniser) -> None:
        self.row, self._spec, self._known = row, spec, known
        self.version = object()
        """Equal only to itself; keeping it does not keep the row in memory."""
        self._kept: _Kept | None = None

    def counts(self, distance: int) -> Counts:
        """Return how often each token followed at a distance, in any column."""
        return self.tally.counts(distance)

    def gains(self, distance: int, below: "Followers | None", frequencies: Frequencies) -> Gains:
        """Return what the row adds to scores at a distance.

        For an own row, `below` is the row of the same token in any column. It is None if there is
        no such row, and for a row of any column: then the frequencies are below. A row that is used
        at one distance is soon used at all of them, so all gains are computed at once.
        """
        versions = None if below is None else below.version, frequencies.version
        kept = self._kept
        if kept is None or kept.below is not versions[0] or kept.frequencies is not versions[1]:
            tally = self.tally
            share = frequencies.share.take(tally.token)
            if below is not None:
                share = backed_off(below.tally, tally, share)
            kept = self._kept = _Kept(*versions, gains_of(tally, share))
        return kept.gains[distance - 1]

    @cached_property
    def tally(self) -> Tally:
        """How often each token followed at each distance, in any column."""
        return tallied(self._near.key, self._near.times)

    @cached_property
    def frequencies(self) -> Frequencies:
        """The frequencies of all tokens; only for the row of EVERYTHING."""
        return frequencies_of(self.counts(1))

    def targets(self, distance: int) -> Targets:
        """Return the neurons that followed at a distance."""
        (home, feature), near = self.neurons, self._near
        here = (near.key // TOKENS == distance).nonzero()[0]
        at = near.at[here]
        return Targets(home[at], feature[at], near.times[here])

    def times_of(self, token: int, distance: int) -> list[tuple[tuple[int, int], int]]:
        """Return how often each neuron (concept, feature) of a token followed at a distance."""
        row, (key, at, times) = self.row, self._near
        here = (key == distance * TOKENS + token).nonzero()[0]
        at = at.take(here)
        ids = row.target_concept.take(at).tolist(), row.target_feature.take(at).tolist()
        return list(zip(zip(*ids, strict=True), times.take(here).tolist(), strict=True))

    def most_frequent(self, distance: int) -> dict[tuple[int, int, int], float]:
        """Return the shares of the most frequent (token, home, feature) at a distance."""
        home, feature, times = self.targets(distance)
        best = np.argsort(-times, kind="stable")[:_MOST_FREQUENT]
        shares = (times[best] / max(int(times.sum()), 1)).tolist()
        names = zip(home[best].tolist(), feature[best].tolist(), strict=True)
        tokens = [(home if feature < 0 else feature, home, feature) for home, feature in names]
        return dict(zip(tokens, shares, strict=True))

    @cached_property
    def neurons(self) -> tuple[Ints, Ints]:
        """The home and the feature of each target of the row, [k] each."""
        row, known = self.row, self._known
        return known.tokens_of(row.target_concept), known.tokens_of(row.target_feature)

    @cached_property
    def _near(self) -> _Near:
        """The connections by distance in tokens.

        Targets that are not tokens, and strengths below one occurrence, are left out: only a lying
        peer sends them.
        """
        row = self.row
        segment, at, strength = row.segment, row.target, row.strength
        if self._spec.column_segments:
            near = np.flatnonzero(segment >= self._spec.column_segments)
            segment, at, strength = segment[near], at[near], strength[near]
        word = np.where(row.target_feature == _PRIME, row.target_concept, row.target_feature)
        token = self._known.tokens_of(word)
        distance = self._spec.segments - segment.astype(np.int64)
        times = strength // _INCREMENTS.take(distance)
        key = distance * TOKENS
        key += token.take(at)
        if token.min(initial=0) < 0 or times.min(initial=1) < 1:
            honest = np.flatnonzero((token.take(at) >= 0) & (times > 0))
            key, at, times = key[honest], at[honest], times[honest]
        return _Near(key, at, times)
