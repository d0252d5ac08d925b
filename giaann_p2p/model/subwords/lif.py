"""The public reference's read-out: leaky integrate-and-fire neurons, in closed form.

Let x_0, x_1, ... be the neurons read, and w the position to predict. A connection of strength s
passes on g(s) = tanh(s / 200) if strengths are graded, else g(1). Of what waits at a segment, the
share `keep` is left after each step. The candidates are the neurons that x_{w-1} leads to at
distance 1:

    score(n) = sum of keep^(w-u) g(x_{u-d} -> n at distance d)   for u = v+1 ... w, d = 1 ... 5
             + sum of keep^e g(x_i -> n, column segment of c)    for i < w, and each c with
                                                                 e = E(i, w-1) - c >= 0

v is one more than the last position at which n was read, or 0: what reached n by then was used up
when n fired. E(i, j) is how often the concept changed between neighbours from position i to j. With
`keep` 0 (0^0 = 1), what had reached the segment of the nearest column when n fired is used up, too.

The best score wins; ties go to the smaller (concept, feature), by tokens, the prime feature first.
But if the score is very low, or the winner has another concept and x_{w-1} was never a delimiter,
there is no prediction.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise, repeat
from operator import mul
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.rows import Neuron
from giaann_p2p.model.spec import UNITS
from giaann_p2p.model.subwords.evidence import Evidence, Place
from giaann_p2p.model.subwords.followers import Followers
from giaann_p2p.model.subwords.ids import DETERMINISTIC, PROBABILISTIC
from giaann_p2p.model.subwords.logarithm import tanh
from giaann_p2p.model.subwords.spec import DISTANCES

_HALF = 200.0
_MOST_GAINS = 1 << 18
"""The gains to keep from one text to the next, at some 200 bytes each."""


class LifSettings(NamedTuple):
    """One of the reference's two settings."""

    graded: bool
    """Whether a stronger connection passes on more."""
    keep: float
    """The share of what waits at a segment that is left after a step, from 0 to 1."""
    least: float
    """A score below this yields no prediction."""


TRAIN = LifSettings(graded=False, keep=0.0, least=0.004)
"""The setting for text that was learned."""
TEST = LifSettings(graded=True, keep=0.25, least=0.008)
"""The setting for other text."""

_Target = tuple[int, int]
"""A neuron by tokens: its concept, and its feature or -1."""
_Gains = dict[_Target, dict[int, float]]
"""What a row passes on, by target and segment."""


class LifChoice(NamedTuple):
    """A prediction."""

    place: Place
    score: float
    candidates: int


class Lif:
    """The read-out over rows that were read, in one setting."""

    def __init__(self, evidence: Evidence, settings: LifSettings) -> None:
        self._evidence, self._settings = evidence, settings
        self._gains: dict[Neuron, _Gains] = {}
        self._count = 0
        # Equal gains are summed as ones and multiplied at the end: equal sums stay exactly equal.
        self._factor = 1.0 if settings.graded else float(tanh(np.array([1 / _HALF]))[0])

    def begin(self) -> None:
        """Begin with another text: forget the gains of the rows read so far if they are many."""
        if self._count > _MOST_GAINS:
            self._gains, self._count = {}, 0

    def needed(self, read: Sequence[Place]) -> list[Neuron]:
        """Return the neurons whose rows a prediction after these tokens depends on."""
        return [*map(self._own, read), *self._flags(read[-1])]

    def choose(self, read: Sequence[Place]) -> LifChoice | None:
        """Predict what follows the tokens read, all of known columns; None for no prediction."""
        last, spec = read[-1], self._evidence.spec
        row = self._evidence.followers(self._own(last))
        if row is None:
            return None
        targets = row.targets(1)
        candidates = list(zip(targets.home.tolist(), targets.feature.tolist(), strict=True))
        if not candidates:
            return None
        scores = _Scores(
            read, [self._of(place) for place in read], spec.column_segments, self._settings
        )
        found = {target: self._factor * scores.of(target) for target in candidates}
        best = min(found, key=lambda target: (-found[target], target))
        home, feature = best
        if found[best] < self._settings.least or not (home == last.home or self._delimits(last)):
            return None
        place = Place(home if feature < 0 else feature, home, feature < 0)
        return LifChoice(place, found[best], len(candidates))

    def _own(self, place: Place) -> Neuron:
        found = self._evidence.own(place)
        if found is None:
            raise ValueError("this read-out needs the column of every token")
        return found

    def _flags(self, place: Place) -> list[Neuron]:
        token = int(self._evidence.known.ids[place.token])
        return [Neuron(DETERMINISTIC, token), Neuron(PROBABILISTIC, token)]

    def _delimits(self, place: Place) -> bool:
        """Return whether a token ever was a delimiter, in all that was learned."""
        flags = map(self._evidence.followers, self._flags(place))
        return not place.prime and any(flag is not None for flag in flags)

    def _of(self, place: Place) -> _Gains:
        neuron = self._own(place)
        found = self._gains.get(neuron)
        if found is None:
            row = self._evidence.followers(neuron)
            found = self._gains[neuron] = {} if row is None else _gains(row, self._settings.graded)
            self._count += 0 if row is None else len(row.row.target)
        return found


def _gains(followers: Followers, graded: bool) -> _Gains:
    row, (home, feature) = followers.row, followers.neurons
    gain = tanh(row.strength / UNITS / _HALF) if graded else np.ones(len(row.strength))
    found: _Gains = {}
    fields = (home[row.target], feature[row.target], row.segment, gain)
    for to_home, to_feature, segment, amount in zip(*(f.tolist() for f in fields), strict=True):
        found.setdefault((to_home, to_feature), {})[segment] = amount
    return found


class _Scores:
    """The scores of candidates after the tokens read, in their order."""

    def __init__(
        self,
        read: Sequence[Place],
        gains: Sequence[_Gains],
        column_segments: int,
        settings: LifSettings,
    ) -> None:
        self._read, self._gains, self._columns = read, gains, column_segments
        steps = repeat(settings.keep, len(read))
        self._keep = list(accumulate(steps, mul, initial=1.0))
        self._forgets = settings.keep == 0
        changes = (a.home != b.home for a, b in pairwise(read))
        self._changes = list(accumulate(changes, initial=0))

    def of(self, target: _Target) -> float:
        """Return the score of a target; if gains are equal, as a multiple of one gain."""
        w = len(self._read)
        token = target[0] if target[1] < 0 else target[1]
        same = Place(token, target[0], target[1] < 0)
        v = next((at + 1 for at in range(w - 1, -1, -1) if self._read[at] == same), 0)
        found = 0.0
        for at, gains in enumerate(self._gains):
            gain = gains.get(target)
            if gain is not None:
                found += self._near(at, v, gain) + self._far(at, v, gain)
        return found

    def _near(self, at: int, v: int, gain: dict[int, float]) -> float:
        """Return what a row passed on by distance in tokens."""
        w, end = len(self._read), self._columns + DISTANCES
        first = max(v + 1 - at, w - at if self._forgets else 1, 1)
        found = 0.0
        for d in range(first, min(DISTANCES, w - at) + 1):  # Python 3.12's `sum` rounds differently
            if end - d in gain:
                found += self._keep[w - at - d] * gain[end - d]
        return found

    def _far(self, at: int, v: int, gain: dict[int, float]) -> float:
        """Return what a row passed on by distance in columns."""
        changes, found = self._changes, 0.0
        apart = changes[-1] - changes[at]
        used = changes[v - 1] - changes[at] if self._forgets and at < v else -1
        for c in range(max(0, used + 1), min(self._columns, apart + 1)):
            if self._columns - 1 - c in gain:
                found += self._keep[apart - c] * gain[self._columns - 1 - c]
        return found
