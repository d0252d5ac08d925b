"""What rows tell of the tokens that follow: counts by token and distance, read from strengths."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.delta import first_of_runs
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import Neuron, Question, Row, Steps
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.spec import ModelSpec, increment
from giaann_p2p.model.subwords.ids import ANY, EVERYTHING
from giaann_p2p.model.subwords.logarithm import Floats
from giaann_p2p.model.subwords.spec import DISTANCES, of_subwords
from giaann_p2p.model.subwords.tokeniser import VOCABULARY, Tokeniser, tokeniser

_TOKENS = 1 << 18
"""More than there are tokens: a distance and three tokens make one number of 57 bits."""
_INCREMENTS = np.array([1, *(increment(distance) for distance in range(1, DISTANCES + 1))])
_MOST_ROWS = 1 << 14
_MOST_CONNECTIONS = 1 << 22
"""The most connections of rows that are kept by default, at some 64 bytes each."""
_MOST_READ = 1 << 21
"""The same for the rows of one answer, which compute peers end if it takes more than 256 MiB."""
ADDED = 0.1
"""Added to the occurrences of each token, so that none is impossible."""
_MOST_FREQUENT = 8
"""The number of followers that are considered for prefetching."""
CONNECTION_BYTES, _ROW_BYTES = 64, 1024
"""The approximate memory of a connection and of a row, as counts."""


class Counts(NamedTuple):
    """How often tokens followed a row's neuron at one distance."""

    token: Ints
    """Shape [k]: the tokens, ascending and distinct."""
    times: Ints
    """Shape [k]: how often each followed; above 0."""
    total: int
    """The sum of the counts."""

    def among(self, token: Ints) -> tuple[Ints, Ints]:
        """Return which of some tokens followed, by their index, and how often each of them did.

        The tokens ascend, and are distinct.
        """
        if len(self.token) < len(token):  # look up the fewer ones
            at = token.searchsorted(self.token)
            hits = np.flatnonzero(token.take(at, mode="clip") == self.token)
            return at[hits], self.times[hits]
        at = self.token.searchsorted(token)
        hits = np.flatnonzero(self.token.take(at, mode="clip") == token)
        return hits, self.times[at[hits]]

    def of(self, token: Ints) -> Ints:
        """Return how often each of some tokens followed; they ascend, and are distinct."""
        found = np.zeros(len(token), np.int64)
        at, times = self.among(token)
        found[at] = times
        return found


NOTHING = Counts(np.empty(0, np.int64), np.empty(0, np.int64), 0)


class Targets(NamedTuple):
    """The neurons that followed a row's neuron at one distance, m in all, in order of tokens."""

    token: Ints
    """Shape [m]: the token of each, ascending."""
    home: Ints
    """Shape [m]: the concept token of its column; -1 in a row that ignores columns."""
    feature: Ints
    """Shape [m]: its feature as a token; -1 for the prime feature."""
    times: Ints
    """Shape [m]: how often each followed."""


class Followers:
    """One row, as counts; they are made when they are first asked for."""

    def __init__(self, row: Row, spec: ModelSpec, known: Tokeniser) -> None:
        self.row, self._spec, self._known = row, spec, known
        self._counts: dict[int, Counts] = {}

    def counts(self, distance: int) -> Counts:
        """Return how often each token followed at a distance, in any column."""
        found = self._counts.get(distance)
        if found is None:
            found = self._counts[distance] = _counts(self.targets(distance))
        return found

    @cached_property
    def frequencies(self) -> Floats:
        """The share of each token of the vocabulary in what followed next, never 0.

        A look-up in this long array is faster than many searches in a short one.
        """
        counts, times = self.counts(1), np.full(VOCABULARY, ADDED)
        times[counts.token] += counts.times
        return times / (counts.total + ADDED * VOCABULARY)

    def targets(self, distance: int) -> Targets:
        """Return the neurons that followed at a distance."""
        return self._targets[distance - 1]

    def most_frequent(self, distance: int) -> dict[tuple[int, int, int], float]:
        """Return what followed most often at a distance: token, home, feature, and its share."""
        targets = self.targets(distance)
        best = np.argsort(-targets.times, kind="stable")[:_MOST_FREQUENT]
        total = int(targets.times.sum())
        shares = (targets.times[best] / max(total, 1)).tolist()
        names = (part[best].tolist() for part in (targets.token, targets.home, targets.feature))
        return dict(zip(zip(*names, strict=True), shares, strict=True))

    @cached_property
    def _targets(self) -> list[Targets]:
        """The neurons that followed at each distance, sorted all at once."""
        row, (token, home, feature) = self.row, self.neurons
        near = np.flatnonzero(row.segment >= self._spec.column_segments)
        distance = self._spec.segments - row.segment[near].astype(np.int64)  # [m]
        at = row.target[near]
        key = ((distance * _TOKENS + token[at]) * _TOKENS + home[at] + 1) * _TOKENS + feature[at]
        order = key.argsort()
        at, distance = at[order], distance[order]
        times = row.strength[near[order]] // _INCREMENTS[distance]
        ends = distance.searchsorted(np.arange(1, DISTANCES + 2)).tolist()
        arrays = (token[at], home[at], feature[at], times)
        return [Targets(*(part[i:j] for part in arrays)) for i, j in pairwise(ends)]

    @cached_property
    def neurons(self) -> tuple[Ints, Ints, Ints]:
        """The token, the home and the feature of each target of the row, [k] each."""
        row = self.row
        home = self._known.tokens_of(row.target_concept)
        feature = self._known.tokens_of(row.target_feature)
        token = np.where(row.target_feature == np.uint64(PRIME), home, feature)
        return token, home, feature


def _counts(targets: Targets) -> Counts:
    if not len(targets.token):
        return NOTHING
    first = np.flatnonzero(first_of_runs(targets.token))
    count = np.add.reduceat(targets.times, first)
    return Counts(targets.token[first], count, int(count.sum()))


class Place(NamedTuple):
    """A token that was read, and its column, if that is known."""

    token: int
    home: int | None
    """The concept token of its column; None if no noun names the column yet."""
    prime: bool = False
    """Whether it is that concept itself."""


class CountedRows:
    """Rows as counts, shared by all who read the same ones, within a bound on memory.

    What was made of a row is found again as long as that row is the same.
    """

    def __init__(self, spec: ModelSpec, most_connections: int = _MOST_CONNECTIONS) -> None:
        self.spec = spec
        self.known = tokeniser(of_subwords(spec).tokeniser)
        self._most = most_connections
        self._rows: dict[Neuron, Followers] = {}
        self._connections = 0

    def __repr__(self) -> str:
        return f"<CountedRows: {len(self._rows):,} rows, {self._connections:,} connections>"

    @property
    def nbytes(self) -> int:
        """The approximate memory of all rows, in bytes."""
        return CONNECTION_BYTES * self._connections + _ROW_BYTES * len(self._rows)

    def of(self, row: Row) -> Followers:
        """Return a row as counts."""
        found = self._rows.get(row.neuron)
        if found is None or not (found.row is row or found.row.same(row)):
            if len(self._rows) > _MOST_ROWS or self._connections > self._most:
                self._rows, self._connections = {}, 0
            self._connections += len(row.target)
            found = self._rows[row.neuron] = Followers(row, self.spec, self.known)
        return found


class Evidence:
    """The rows that were read, as counts. A row is read once, so it does not change meanwhile.

    It keeps rows up to a bound on memory, and then begins anew.
    """

    def __init__(self, counted: CountedRows) -> None:
        self.spec, self.known = counted.spec, counted.known
        self._counted = counted
        self._rows: dict[Neuron, Followers | None] = {}
        self._connections = 0

    def __repr__(self) -> str:
        return f"<Evidence: {len(self._rows):,} rows, {self._connections:,} connections>"

    @property
    def nbytes(self) -> int:
        """The approximate memory that the rows take, in bytes."""
        return CONNECTION_BYTES * self._connections + _ROW_BYTES * len(self._rows)

    def need(self, neurons: Sequence[Neuron]) -> Steps[None]:
        """Read those rows that are not at hand."""
        if len(self._rows) > _MOST_ROWS or self._connections > _MOST_READ:
            self.forget()
        missing = [neuron for neuron in dict.fromkeys(neurons) if neuron not in self._rows]
        if not missing:
            return
        rows = yield Question(missing)
        for neuron, row in zip(missing, rows, strict=True):
            self._rows[neuron] = None if row is None else self._counted.of(row)
            self._connections += len(row.target) if row else 0

    def at_hand(self, neuron: Neuron | None) -> Followers | None:
        """Return a row if it was read; None if it was not, or if there is no such neuron."""
        return None if neuron is None else self._rows.get(neuron)

    def forget(self) -> None:
        """Give the memory back."""
        self._rows, self._connections = {}, 0

    def place_of(self, neuron: Neuron) -> Place | None:
        """Return the token and the column that a neuron stands for; None if it is no token."""
        home, feature = self.known.tokens_of(np.array(neuron, np.uint64)).tolist()
        if neuron.feature == PRIME:
            return Place(home, home, prime=True) if home >= 0 else None
        if feature < 0 or (home < 0 and neuron.concept != ANY):
            return None
        return Place(feature, home if home >= 0 else None)

    def own(self, place: Place) -> Neuron | None:
        """Return the neuron of a token in its column; None if the column is not known."""
        if place.home is None:
            return None
        return self.neuron(place.home, -1 if place.prime else place.token)

    def neuron(self, home: int, feature: int) -> Neuron:
        """Return a neuron by the tokens that name it; a feature of -1 is prime."""
        ids = self.known.ids
        return Neuron(int(ids[home]), PRIME if feature < 0 else int(ids[feature]))

    def anywhere(self, token: int) -> Neuron:
        """Return the neuron that stands for a token in any column."""
        return Neuron(ANY, int(self.known.ids[token]))

    def followers(self, neuron: Neuron | None) -> Followers | None:
        """Return a row that was read; None if there is no such neuron."""
        return None if neuron is None else self._rows[neuron]

    def counts(self, neuron: Neuron | None, distance: int) -> Counts:
        """Return what followed a neuron at a distance; NOTHING if there is no such neuron."""
        found = self.followers(neuron)
        return NOTHING if found is None else found.counts(distance)

    @property
    def occurrences(self) -> Counts:
        """How often each token occurred in all that was learned."""
        return self.counts(EVERYTHING, 1)

    def frequency(self, tokens: Ints) -> Floats:
        """Return the share of each token in all that was learned, never 0."""
        everything = self.followers(EVERYTHING)
        if everything is None:
            return np.full(len(tokens), 1 / VOCABULARY)
        return everything.frequencies[tokens]


def needed(evidence: Evidence, last: Sequence[Place]) -> list[Neuron]:
    """Return the neurons whose rows a choice after these tokens depends on."""
    found = [EVERYTHING]
    for place in last[:DISTANCES]:
        found.append(evidence.anywhere(place.token))
        if (own := evidence.own(place)) is not None:
            found.append(own)
    return found
