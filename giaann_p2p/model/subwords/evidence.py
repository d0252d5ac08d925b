"""The rows that choices depend on: which rows they are, and those read so far, as counts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.rows import Neuron, Question, Row, Steps
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.counts import NOTHING, Counts
from giaann_p2p.model.subwords.followers import Followers
from giaann_p2p.model.subwords.frequencies import Frequencies, uniform
from giaann_p2p.model.subwords.ids import ANY, EVERYTHING
from giaann_p2p.model.subwords.spec import DISTANCES, of_subwords
from giaann_p2p.model.subwords.tokeniser import tokeniser

_MOST_ROWS = 1 << 14
MOST_CONNECTIONS = 1 << 22
"""The most connections in the rows kept for later answers, at some 80 bytes each."""
_MOST_READ = 1 << 21
"""The same for the rows of one answer; compute peers end an answer that takes over 256 MiB."""
CONNECTION_BYTES, _ROW_BYTES = 80, 1024
"""The approximate memory of a connection and of a row, as counts and gains."""


class Place(NamedTuple):
    """A token that was read, and its column, if that is known."""

    token: int
    home: int | None
    """The concept token of its column; None if no noun names the column yet."""
    prime: bool = False
    """Whether the token is that concept itself."""


class CountedRows:
    """Rows as counts, shared by all answers, within a bound on memory.

    The counts of a row are used again as long as the row is the same.
    """

    def __init__(self, spec: ModelSpec, most_connections: int = MOST_CONNECTIONS) -> None:
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
        """Return a row as counts, which are computed anew only if the row has changed."""
        found = self._rows.get(row.neuron)
        if found is not None and (found.row is row or found.row.same(row)):
            found.row = row  # the same object is not compared again
            return found
        if len(self._rows) > _MOST_ROWS or self._connections > self._most:
            self._rows, self._connections, found = {}, 0, None
        self._connections += len(row.target) - (len(found.row.target) if found else 0)
        found = self._rows[row.neuron] = Followers(row, self.spec, self.known)
        return found


class Evidence:
    """The rows that were read, as counts. A row is read once, so it does not change meanwhile.

    It keeps rows up to a bound on memory, and then forgets all of them.
    """

    def __init__(self, counted: CountedRows) -> None:
        self.spec, self.known = counted.spec, counted.known
        self._counted = counted
        self._rows: dict[Neuron, Followers | None] = {}
        self._pairs: dict[Place, Pair] = {}
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
        """Forget all rows, to free their memory."""
        self._rows, self._pairs, self._connections = {}, {}, 0

    def place_of(self, neuron: Neuron) -> Place | None:
        """Return the token and the column that a neuron stands for; None if it is not a token."""
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
        """Return a row that was read; None if there is no such neuron or no such row."""
        return None if neuron is None else self._rows[neuron]

    @property
    def occurrences(self) -> Counts:
        """How often each token occurred in all that was learned."""
        everything = self.followers(EVERYTHING)
        return NOTHING if everything is None else everything.counts(1)

    @property
    def frequencies(self) -> Frequencies:
        """How frequent each token is in all that was learned."""
        everything = self.followers(EVERYTHING)
        return uniform() if everything is None else everything.frequencies

    def rows_of(self, last: Sequence[Place]) -> list["Pair"]:
        """Return the rows of the last tokens; all of them must have been read."""
        return [self._pairs.get(place) or self._pair(place) for place in last[:DISTANCES]]

    def _pair(self, place: Place) -> "Pair":
        own, anywhere = self.own(place), self.anywhere(place.token)
        found = self._pairs[place] = Pair(self.followers(own), self.followers(anywhere))
        return found


class Pair(NamedTuple):
    """The two rows of a token; None for a row that does not exist."""

    own: Followers | None
    """The row of the token in its own column."""
    anywhere: Followers | None
    """The row of the token in any column."""


def needed(evidence: Evidence, last: Sequence[Place]) -> list[Neuron]:
    """Return the neurons whose rows a choice after these tokens depends on."""
    found = [EVERYTHING]
    for place in last[:DISTANCES]:
        found.append(evidence.anywhere(place.token))
        if (own := evidence.own(place)) is not None:
            found.append(own)
    return found
