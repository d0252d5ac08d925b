"""Reads of a store's shards; nothing here changes the store.

Reading rows takes no lock: any thread may read while another writes. A read that must not see half
of a write takes the store's write lock.
"""

import threading
from collections.abc import Iterable, Iterator

from pyroaring import BitMap

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import added
from giaann_p2p.model.row_slice import EVERYTHING, RowSlice
from giaann_p2p.model.rows import Answer, Question, noun_rows
from giaann_p2p.model.sequence import Ids, Names
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.codec.sheaf import encode as encode_sheaf
from giaann_p2p.store.content import Content
from giaann_p2p.store.cut_columns import whole
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.nouns import Noun, nouns
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.statistics import Statistics, statistics


class StoreReads:
    """The part of a store that only reads its state."""

    def __init__(self, state: StoreState, lock: threading.Lock) -> None:
        self._state, self._lock = state, lock

    @property
    def spec(self) -> ModelSpec:
        """The parameters of the model that the store was created for."""
        return self._state.spec

    @property
    def layout(self) -> Layout:
        """The present layout, which maps each row to a shard; `double` replaces it."""
        return self._state.columns.layout

    @property
    def limits(self) -> Limits:
        """The limits on the size of parcels that this store decodes."""
        return self._state.limits

    @property
    def shards(self) -> Shards:
        """The shards that are held, ascending."""
        return self._state.shards

    @property
    def nbytes(self) -> int:
        """The approximate memory that the store takes, in bytes."""
        return self._state.nbytes

    @property
    def used(self) -> int:
        """The bytes that count against the budget, with a reserve for merging the largest shard."""
        return Budget.used(self._state)

    @property
    def notes(self) -> dict[str, bytes]:
        """A copy of the notes that callers have set, by key."""
        return dict(self._state.notes)

    def read(self, question: Question) -> Answer:
        """Return the rows of the question's neurons, in order; None for a neuron without one."""
        if question.frequent:
            return noun_rows(self.nouns(frequent=question.frequent), question.frequent)
        columns, names_only = self._state.columns, question.names_only
        return [columns.row(neuron, names_only) for neuron in question.neurons]

    def rows(self, concept: Ids, feature: Ids, within: RowSlice = EVERYTHING) -> bytes:
        """Return a slice of some neurons' rows as a sheaf; neurons without a row are left out."""
        rows = self._state.columns.rows(concept, feature, within)
        return encode_sheaf(rows, self.spec.branches, self.spec.segments)

    def connections_of(self, concept: Ids, feature: Ids) -> int:
        """Return how many connections some neurons have, without connections not merged yet."""
        return self._state.columns.connections_of(concept, feature)

    def features(self, concept: int, most: int) -> Ids:
        """Return up to `most` features of a column's rows here, the most frequent first."""
        return self._state.columns.features(concept, most)

    def applied(self, shard: int, job: bytes) -> BitMap:
        """Return the chunks of a job that a shard has applied; none if the shard is not held."""
        with self._lock:
            ledger = self._state.ledger
            return ledger.of(shard).of(job).copy() if shard in ledger else BitMap()

    def content(self, *shards: int) -> Content:
        """Return the current content of the given shards, without shards that are not held."""
        with self._lock:
            captured = self._state.capture(shards)
        return self._state.content(captured)

    def knowledge(self) -> Delta:
        """Return what all held shards know, with the rows of cut columns whole."""
        return whole(self.content(*self.shards.tolist()).delta)

    def statistics(self, *shards: int) -> Statistics:
        """Return statistics of some shards; without arguments, of all held shards."""
        with self._lock:
            captured = self._state.capture(shards or self.shards.tolist())
        return statistics(captured)

    def nouns(self, *shards: int, frequent: int = 0) -> list[Noun]:
        """Return the nouns that some shards hold, or all held shards, in the order of names.

        With `frequent`, return only that many of the most frequent nouns.
        """
        with self._lock:
            captured = self._state.capture(shards or self.shards.tolist())
        return nouns(captured, frequent)

    def names(self) -> Names:
        """Return the text of every word that names a row in this store, by word id."""
        with self._lock:
            return dict(self._state.columns.names)

    def size_of(self, shard: int) -> int:
        """Return the number of connections in a shard, without connections not merged yet."""
        return self._state.columns.size_of(shard)

    def sets(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the applied chunks of the given shards, without shards that are not held.

        The sets are immutable, and shards with equal sets share one object.
        """
        with self._lock:
            return self._state.ledger.some(shards)

    def digests(self) -> Iterator[tuple[int, int]]:
        """Yield the number of each held shard, and the digest of its content."""
        for number in self.shards.tolist():
            held = self.content(number)
            if len(held.shards):
                yield number, held.digest

    def digest(self) -> int:
        """Return the digest of the whole store: the sum of its shards' digests."""
        while True:
            layout = self.layout
            found = added(number for _, number in self.digests())
            if self.layout is layout:  # otherwise some shards were divided meanwhile
                return found
