"""All held columns, in memory: shards, the batches not merged into them yet, and names.

One thread adds, merges and drops. Meanwhile any number of threads read without a lock, and see each
row as it was at one moment. Shared objects are replaced, never mutated: a shard by its successor,
the tuple of batches by another tuple. The order matters: a writer publishes a batch before it makes
one of the batch's pieces a neuron's last piece, and a merged shard before it drops batches. A
reader loads in the opposite order: last pieces, batches, shards. So the reader finds each piece in
a batch or merged into the shard.

If the number of shards is doubled, all batches are merged first. Then a new table is published, in
which each part of a shard is still the whole shard; so its rows are found by the new layout, too.
Then the shards are divided one by one: the rows' new indices are written, then the parts are
published. A reader with a whole shard and a new index finds another neuron there, and tries again.

Adding sets the pace of merging: by the time the added connections amount to a third of the merged
ones, every shard has been merged once, one after the other. So each merge is short, a connection is
copied only a few times in all, and the unmerged part stays a fraction of the whole.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.hash_table import Numbers
from giaann_p2p.model.ids import PRIME
from giaann_p2p.model.neurons import Neurons
from giaann_p2p.model.row_slice import EVERYTHING, RowSlice
from giaann_p2p.model.rows import Name, Neuron, Row, empty_row
from giaann_p2p.model.sequence import Ids, Names
from giaann_p2p.store.codec.sheaf import Sheaf
from giaann_p2p.store.cuts import part_of
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.memory.batch import Batch, Gathered, Pending, batch_of, gathered
from giaann_p2p.store.memory.content import of_rows
from giaann_p2p.store.memory.found import Found
from giaann_p2p.store.memory.heads import Heads
from giaann_p2p.store.memory.places import Places
from giaann_p2p.store.memory.row import joined, row_of
from giaann_p2p.store.memory.shard import Shard, empty_shard
from giaann_p2p.store.memory.split import split

_NO_ROW = -1
_LEAST_PENDING = 1 << 19
"""The least number of added connections over which merging every shard once is spread."""
_LEAST_BATCH = 64
"""The least number of connections that a batch counts as; otherwise tiny batches would pile up."""
_PART_PENDING = 3
_NAME_BYTES = 150
"""Bytes that a word takes in the dictionary of names besides its text."""


class _Table(NamedTuple):
    """The shards by number. A new layout gets a new table; other changes mutate the list."""

    layout: Layout
    shards: list[Shard | None]


class Columns:
    """The rows of all held shards by neuron; deltas are added to them."""

    def __init__(self, layout: Layout, places: Places) -> None:
        self._table = _Table(layout, [None] * layout.shards)
        self._before = layout.shards
        """The number of all shards before the last doubling."""
        self._undivided = set[int]()
        """The shards that the last doubling has not divided yet: it is still running, or failed."""
        self.places = places
        self.neurons = Neurons()
        self.names: Names = {}
        self._pending = Pending()
        self._pieces = 0  # the number of the next piece
        self._heads = Heads()
        self._row = np.empty(0, np.int32)  # by neuron: its row in its shard
        self._turn, self._due = 0, 0.0  # the shard to merge next, and the number of merges due
        self._name_bytes = 0
        self.renamed = 0
        """A counter of how often a known word's text was replaced."""

    @property
    def layout(self) -> Layout:
        """The layout, which maps each row to a shard."""
        return self._table.layout

    @property
    def _shards(self) -> list[Shard | None]:
        return self._table.shards

    def double(self, layout: Layout) -> None:
        """Divide all shards into those of a layout that has more shards."""
        self.merge_all()
        self._before = self.layout.shards
        held = [number for number, shard in enumerate(self._shards) if shard is not None]
        self._undivided.update(held)
        self._table = _Table(layout, self._shards * (layout.shards // self._before))
        for number in held:
            self._divide(number)

    def _divide(self, number: int) -> None:
        """Divide a shard of the former layout; afterwards, each part is a shard of its own."""
        shard = self._shards[number]
        if shard is not None:
            of = self.layout.shards_of(*self.neurons.ids(shard.neuron))
            part_of = of.astype(np.int64) // self._before
            parts = list(split(shard, part_of, self.layout.shards // self._before))
            rows = [np.arange(part.rows, dtype=np.int32) for part in parts]
            # From here on nothing may fail, not even for lack of memory: a reader of a moved row
            # retries until the parts are published.
            for part, row in zip(parts, rows, strict=True):
                self._row[part.neuron] = row
            self._shards[number :: self._before] = parts  # publishes all parts at once
        self._undivided.discard(number)

    def hold(self, number: int) -> None:
        """Begin to hold a shard, which is empty."""
        self._shards[number] = empty_shard(self.places.dtype, self._pieces)

    def drop(self, number: int) -> None:
        """Stop holding a shard: its rows are removed."""
        shard = self._shards[number]
        self._shards[number] = None
        if shard is not None:
            self._row[shard.neuron] = _NO_ROW
        self._let_go()

    def adopt(self, numbers: Shards, delta: Delta) -> None:
        """Replace the content of shards by a delta's rows, each shard in one atomic step."""
        batch = self._batch(delta, numbers)
        self._learn_names(delta.names)
        for number in numbers.tolist():
            shard = self._shards[number]
            emptied = empty_shard(self.places.dtype) if shard is None else shard.emptied()
            self._shards[number] = self._grown(emptied, [(batch, batch.of_shard(number))])
        self._let_go()

    def size_of(self, number: int) -> int:
        """Return how many merged connections a shard has; 0 if it is not held."""
        shard = self._shards[number]
        return shard.connections if shard else 0

    @property
    def neurons_used(self) -> int:
        """The number of distinct neurons in the shards, without batches that are not merged yet."""
        occurs = np.zeros(len(self.neurons), np.bool_)
        for shard in self._shards:
            if shard:
                occurs[shard.occurring] = True
                occurs[shard.target] = True
        return int(np.count_nonzero(occurs))

    @property
    def largest(self) -> int:
        """The number of merged connections in the largest shard."""
        return max((shard.connections for shard in self._shards if shard), default=0)

    @property
    def connections(self) -> int:
        """The number of connections; an unmerged one counts once for each batch that it is in."""
        pending = sum(batch.connections for batch in self._pending.batches)
        return pending + sum(shard.connections for shard in self._shards if shard)

    @property
    def nbytes(self) -> int:
        """The memory that the columns take, in bytes, including batches, indices and names."""
        indices = self.neurons.nbytes + self._heads.last.nbytes + self._row.nbytes
        pending = sum(batch.nbytes for batch in self._pending.batches)
        shards = sum(shard.nbytes for shard in self._shards if shard)
        return indices + self._name_bytes + pending + shards

    def add(self, delta: Delta, shards: Shards) -> None:
        """Add the rows of a delta that belong to the given shards, all of which must be held."""
        self._learn_names(delta.names)
        self._append(self._batch(delta, shards))

    def subtract(self, delta: Delta, shards: Shards) -> None:
        """Subtract the rows of a delta from the given shards; they must have been added before."""
        self._append(self._batch(delta, shards).taken_back())

    def _append(self, batch: Batch) -> None:
        if not len(batch.neuron):
            return
        self._pending = self._pending.plus(batch)
        self._pieces = batch.end
        self._heads = self._heads.up_to(batch.end, self._pending.firsts[0])
        self._heads.put(batch.neuron, batch.first)
        self._keep_pace(max(batch.connections + len(batch.neuron), _LEAST_BATCH))

    def _batch(self, delta: Delta, shards: Shards) -> Batch:
        wanted = np.full(self.layout.shards, -1)
        wanted[shards] = shards
        number = self.neurons.numbers(delta.concept, delta.feature)
        self._make_room()
        return batch_of(
            delta,
            wanted[self.layout.shards_of(delta.concept, delta.feature)],
            self.layout.shards,
            number,
            self.places.of(delta.branch, delta.segment),
            self._pieces,
            self._heads,
        )

    def merge(self, number: int) -> Shard | None:
        """Merge a shard's pending pieces into it; return the shard, or None if it is not held."""
        if self._undivided and number % self._before in self._undivided:
            self._divide(number % self._before)
        shard = self._shards[number]
        if shard is not None and shard.floor < self._pieces:
            self._shards[number] = shard = self._merged(number, shard)
        return shard

    def merge_all(self) -> None:
        """Merge all pending batches into all shards; the columns then take the least memory."""
        for number in range(self.layout.shards):
            self.merge(number)
        self._pending = Pending()

    def row(self, neuron: Neuron, names_only: bool = False) -> Row | None:
        """Return a neuron's row; None if the neuron has no row here.

        With `names_only`, connections may be left out: gathering many of them takes long.
        """
        number = self.neurons.find(*neuron)
        if number is None or number >= len(self._heads):
            return None
        while True:
            piece = self._heads.one(number)
            pending = self._pending
            layout, shards = table = self._table
            shard_number = layout.shard_of(*neuron)
            shard = shards[shard_number]
            row = self._row.item(number)
            if shard is None:
                return None
            if row >= shard.rows:
                row = _NO_ROW  # the row is newer than this version of the shard
            if row == _NO_ROW:
                same = self._table is table and shards[shard_number] is shard
            else:
                same = shard.plain.neuron[row] == number
            if same:
                if names_only and _count(shard, row, pending.chain(piece, shard.floor)) > 0:
                    return empty_row(neuron, self._name(neuron))
                return self._row_at(neuron, number, shard, row, pending, piece)
            # else retry: the shard was divided meanwhile, or dropped, and perhaps held again

    def features(self, concept: int, most: int) -> Ids:
        """Return up to `most` features of a column's rows here, the most frequent first.

        Occurrences that are not merged yet do not count. A few of the features may have no row any
        more, because it was dropped or withdrawn.
        """
        while True:
            found = self._features_at_once(concept, most)
            if found is not None:
                return found

    def _features_at_once(self, concept: int, most: int) -> Ids | None:
        """Return a column's most frequent features; None if a shard was divided meanwhile."""
        number = self.neurons.of_concept(concept)
        number = number[number < len(self._heads)]
        layout, shards = self._table
        shards = list(shards)  # copied first, so that a row index newer than its shard is noticed
        row = self._row[number]
        here = (row != _NO_ROW) | (self._heads.last[number] >= 0)
        number, row = number[here], row[here]
        _, feature = self.neurons.ids(number)
        count = np.zeros(len(number), np.int64)
        of = layout.shards_of(np.full(len(number), concept, np.uint64), feature)
        for at in set(of.tolist()):
            shard = shards[at]
            if shard is not None:
                merged = np.flatnonzero((of == at) & (row != _NO_ROW) & (row < shard.rows))
                if not np.array_equal(shard.neuron[row[merged]], number[merged]):
                    return None
                count[merged] = shard.count[row[merged]]
        order = np.lexsort((feature, -count))
        found: Ids = feature[order[:most]]
        return found

    def connections_of(self, concept: Ids, feature: Ids) -> int:
        """Return how many merged connections some neurons have in total.

        This is a loop because a question has few neurons: arrays would be slower.
        """
        found = 0
        for neuron in zip(concept.tolist(), feature.tolist(), strict=True):
            number = self.neurons.find(*neuron)
            layout, shards = self._table
            shard = shards[layout.shard_of(*neuron)]
            if shard is None or number is None or number >= len(self._row):
                continue
            row = int(self._row[number])
            plain = shard.plain
            if row != _NO_ROW and row < shard.rows and plain.neuron[row] == number:
                found += plain.starts[row + 1] - plain.starts[row]
        return found

    def rows(self, concept: Ids, feature: Ids, within: RowSlice = EVERYTHING) -> Sheaf:
        """Return a slice of the given neurons' rows; neurons without a row here are left out.

        Rows with a count of 0 are left out, too, because only a lying peer adds them; but rows of
        the parts of cut columns are returned. One call is cheaper than many calls of `row`.
        """
        sheaf = self._rows(concept, feature, within)
        names = self._names_of(sheaf)
        never = sheaf.row[sheaf.counts == 0]
        pairs = [sheaf.words[part[never]].tolist() for part in (sheaf.concept, sheaf.feature)]
        if false := {pair for pair in zip(*pairs, strict=True) if part_of(names[pair[0]]) is None}:
            asked = zip(concept.tolist(), feature.tolist(), strict=True)
            told = np.array([pair not in false for pair in asked])
            return self.rows(concept[told], feature[told], within)
        return sheaf._replace(names=names)

    def delta_of(self, concept: Ids, feature: Ids) -> Delta:
        """Return the given neurons' rows as a delta without names; missing rows are left out."""
        return of_rows(self._rows(concept, feature), self.places)

    def _rows(self, concept: Ids, feature: Ids, within: RowSlice = EVERYTHING) -> Sheaf:
        while True:
            rows = self._rows_at_once(concept, feature, within)
            if rows is not None:
                return rows

    def _rows_at_once(self, concept: Ids, feature: Ids, within: RowSlice) -> Sheaf | None:
        """Return the rows of some neurons; None if a shard was divided or dropped meanwhile."""
        number = self.neurons.look_up(concept, feature)
        number = np.unique(number[number < len(self._heads)])
        table = self._table
        of = table.layout.shards_of(*self.neurons.ids(number))
        by_shard = of.argsort(kind="stable")  # locality: read one shard after the other
        number, of = number[by_shard], of[by_shard]
        # Load last pieces, then batches, then shards, so that no piece is missed during a merge.
        heads, pending, shards = self._heads.of(number).tolist(), self._pending, list(table.shards)
        if self._table is not table:
            return None
        rows = self._row[number].tolist()
        found = Found(self.places, within)
        for neuron, piece, row, n in zip(number.tolist(), heads, rows, of.tolist(), strict=True):
            shard = shards[n]
            if shard is None:
                continue
            if row >= shard.rows:
                row = _NO_ROW  # noqa: PLW2901  (newer than this version of the shard)
            if row != _NO_ROW:
                same = shard.plain.neuron[row] == neuron
            else:
                same = self._table is table and table.shards[n] is shard
            if not same:
                return None
            found.take(neuron, shard, row, pending, piece)
        return found.sheaf(self.neurons)

    def _names_of(self, sheaf: Sheaf) -> Names:
        """Return the texts of the words of a sheaf's rows."""
        there = np.zeros(len(sheaf.words), np.bool_)
        there[sheaf.concept[sheaf.row]] = there[sheaf.feature[sheaf.row]] = True
        there[:1] = False  # PRIME has no text
        return {word: self.names[word] for word in sheaf.words[there].tolist()}

    def _row_at(
        self, neuron: Neuron, number: int, shard: Shard, row: int, pending: Pending, piece: int
    ) -> Row | None:
        renamed = self.renamed
        made = shard.made.get(number, piece, renamed)
        if made is not None:
            return made
        pieces = list(pending.chain(piece, shard.floor))
        parts = [batch.part(at) for batch, at in pieces]
        if row != _NO_ROW:
            parts.append(shard.part(row))
        if not parts:
            return None
        count = _count(shard, row, pieces)
        part = parts[0] if len(parts) == 1 else joined(parts)
        if not (count or len(part.target)):  # all of it was withdrawn
            return None
        name = self._name(neuron)
        made = row_of(neuron, number, name, count, part, self.neurons, self.places)
        shard.made.add(number, piece, renamed, made)
        return made

    def _name(self, neuron: Neuron) -> Name:
        concept, feature = neuron
        return Name(self.names[concept], None if feature == PRIME else self.names[feature])

    def _merged(self, number: int, shard: Shard) -> Shard:
        batches = self._pending.since(shard.floor).batches
        return self._grown(shard, [(batch, batch.of_shard(number)) for batch in batches])

    def _grown(self, shard: Shard, parts: list[tuple[Batch, slice]]) -> Shard:
        """Return a new version of the shard, with ranges of pieces merged into it."""
        batches = [(batch, part) for batch, part in parts if part.start < part.stop]
        if not batches:
            return replace(shard, floor=self._pieces)
        added = gathered(batches)
        new = self._new_rows(shard, added.neuron)
        try:
            return self._with_pieces(shard, new, added)
        except BaseException:
            self._row[new] = _NO_ROW  # otherwise the next merge would assume that the rows exist
            raise

    def _with_pieces(self, shard: Shard, new: Numbers, added: Gathered) -> Shard:
        neuron = np.concatenate([shard.neuron, new])
        row = self._row[added.neuron].astype(np.int64)
        count = np.zeros(len(neuron), np.int64)
        count[: shard.rows] = shard.count
        np.add.at(count, row, added.count)
        return shard.merged(neuron, count, [added.piece(row)], self._pieces)

    def _new_rows(self, shard: Shard, neuron: Numbers) -> Numbers:
        """Assign a row of the shard to each neuron without one; return these neurons."""
        new = np.unique(neuron[self._row[neuron] == _NO_ROW])
        self._row[new] = np.arange(shard.rows, shard.rows + len(new))
        return new

    def _keep_pace(self, connections: int) -> None:
        """Merge the shards that are due, after this many connections were added."""
        merged = sum(shard.connections for shard in self._shards if shard)
        limit = max(_LEAST_PENDING, merged // _PART_PENDING)
        self._due += self.layout.shards * connections / limit
        while self._due >= 1:
            self._due -= 1
            self.merge(self._turn)
            self._turn = (self._turn + 1) % self.layout.shards
        self._let_go()

    def _let_go(self) -> None:
        """Drop the batches that are merged into every held shard."""
        floor = min((shard.floor for shard in self._shards if shard), default=self._pieces)
        self._pending = self._pending.since(floor)

    def _make_room(self) -> None:
        more = self.neurons.room - len(self._heads)
        if more:
            self._row = np.concatenate([self._row, np.full(more, _NO_ROW, np.int32)])
            self._heads = self._heads.longer(more)

    def _learn_names(self, names: Names) -> None:
        for number, text in names.items():
            known = self.names.get(number)
            if known is None:
                self.names[number] = text
                self._name_bytes += _NAME_BYTES + len(text)
            elif text < known:  # two texts of one id: the smaller wins, in any order of arrival
                self.names[number] = text
                self.renamed += 1  # after the text: a cache never has old text under a new count


def _count(shard: Shard, row: int, pieces: Iterable[tuple[Batch, int]]) -> int:
    """Return how often a neuron occurred, by its merged row and its unmerged pieces."""
    merged = 0 if row == _NO_ROW else shard.plain.counts[row]
    return sum([batch.plain.counts[at] for batch, at in pieces], merged)
