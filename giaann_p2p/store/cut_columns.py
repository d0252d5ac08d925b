"""Cut columns: the largest columns, cut by target into several columns in various shards.

Neither shards nor blocks divide a single row, but a frequent word's row grows with the model: it
has half a percent of all connections, whatever the number of shards. So a layout may cut columns,
each into 2^k parts. A hash of a connection's target determines its part. Part 0 is the column
itself, and all occurrences count there. Each other part is a column of its own; its name is the
word, `MARK` and the number of the part, and no word has such a name. So shards, stores, peers and
votes treat a part as any other column. Only the peer that learns a chunk cuts its delta, and only
the reader that makes a prediction joins the rows again.

Cutting changes neither the rows that are read nor the answers.

A column may be cut into more parts later. Parts are divided as shards are: part j of 2^k becomes
the parts j and j + 2^k, by one more bit of the same hash. But no connection is moved: one that was
learned earlier stays in its part, and a row is the sum of its parts.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from giaann_p2p.model.delta import ConnectionKey, Delta, first_of_runs, unique_neurons
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.rows import Answer, Name, Neuron, Row
from giaann_p2p.model.sequence import Ids, Ints, Names
from giaann_p2p.store.cuts import MARK, MOST_ALL, Cut, names_of, part_of
from giaann_p2p.store.row_parts import cut_apart, joined, part_of_target


class CutColumns:
    """The columns that are cut by target; in a condition, it is false if there are none."""

    def __init__(self, cuts: Sequence[Cut], recut: Collection[str] = ()) -> None:
        """`recut`: the words of columns that had fewer parts when some chunks were learned."""
        self.cuts = tuple(cuts)
        by_id = sorted((word_id(cut.word), cut) for cut in cuts)
        self._concept = np.array([concept for concept, _ in by_id], np.uint64)
        self._parts = np.array([cut.parts for _, cut in by_id], np.uint64)
        self._first = np.cumsum([0, *(cut.parts for _, cut in by_id)])[:-1]
        names = [name for _, cut in by_id for name in names_of(cut)]
        # The parts of all columns, one column after the other: the name and concept of each.
        self._names = np.array(names, np.object_)
        self._ids = np.array([word_id(name) for name in names], np.uint64)
        self._at = {concept: at for at, (concept, _) in enumerate(by_id)}
        self._sizes = [cut.parts for _, cut in by_id]
        self._recut = frozenset(map(word_id, recut))
        self._hash = hash((self.cuts, self._recut))

    def __len__(self) -> int:
        return len(self._concept)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CutColumns):
            return NotImplemented
        return self is other or (self.cuts, self._recut) == (other.cuts, other._recut)

    def __hash__(self) -> int:
        return self._hash  # computed once: it covers thousands of words, and each read needs it

    def __repr__(self) -> str:
        return f"<CutColumns: {len(self)} with {len(self._ids):,} parts>"

    def cut(self, delta: Delta) -> Delta:
        """Move the connections of cut columns to their parts; `whole` undoes it."""
        if not self:
            return delta
        at, is_cut = _found(delta.concept, self._concept)
        held = np.flatnonzero(is_cut[delta.source])
        if not len(held):
            return delta
        source, target = delta.source[held], delta.target[held]
        part = part_of_target(delta.concept[target], delta.feature[target], self._parts[at[source]])
        moved = part > 0
        number = self._first[at[source[moved]]] + part[moved]
        used = np.unique(number)
        names = dict(zip(self._ids[used].tolist(), self._names[used].tolist(), strict=True))
        kept = np.ones(delta.neurons, np.bool_)
        return _rehomed(delta, kept, held[moved], self._ids[number], delta.names | names)

    @property
    def most(self) -> int:
        """The largest number of parts of any column; 1 if none is cut."""
        return max(self._sizes, default=1)

    def parts_of(self, neuron: Neuron) -> int:
        """Return the number of parts of a neuron's row; 1 if its column is not cut."""
        at = self._at.get(neuron.concept)
        return 1 if at is None else self._sizes[at]

    def parts(self, neuron: Neuron) -> list[Neuron]:
        """Return the neurons whose rows together are a neuron's row, part 0 first."""
        at = self._at.get(neuron.concept)
        if at is None:
            return [neuron]
        ids = self._ids[self._first[at] :][: self._sizes[at]]
        return [Neuron(concept, neuron.feature) for concept in ids.tolist()]

    def asked(self, neurons: Iterable[Neuron]) -> list[Neuron]:
        """Return the neurons whose rows a reader must request: all parts of the given neurons."""
        return [part for neuron in neurons for part in self.parts(neuron)]

    def joined(self, neurons: Iterable[Neuron], rows: Answer) -> Answer:
        """Return the rows of some neurons; `rows` are those of `asked(neurons)`, in order."""
        left = iter(rows)
        return [self._row(neuron, left) for neuron in neurons]

    def known(self, rows: Mapping[Neuron, Row], least: int = 0) -> dict[Neuron, Row]:
        """Cut known rows into the rows of their parts, so that each part can be compared alone.

        Left out are rows of columns that were cut again later, because it is unknown which part has
        which connection, and parts with fewer than `least` connections.
        """
        found = dict[Neuron, Row]()
        for neuron, row in rows.items():
            if neuron.concept not in self._at:
                found[neuron] = row
            elif neuron.concept not in self._recut and len(row.strength) >= least:
                found |= {part.neuron: part for part in self._cut_apart(row, least)}
        return found

    def _row(self, neuron: Neuron, rows: Iterator[Row | None]) -> Row | None:
        at = self._at.get(neuron.concept)
        if at is None:
            return next(rows)
        return joined([*islice(rows, self._sizes[at])], neuron.concept in self._recut)

    def _cut_apart(self, row: Row, least: int) -> Iterator[Row]:
        """Yield the row of each part of a whole row that has at least `least` connections."""
        at = self._at[row.neuron.concept]
        for number, part in cut_apart(row, self._sizes[at], least):
            numbered = self._first[at] + number
            neuron = Neuron(self._ids.item(numbered), row.neuron.feature)
            yield replace(part, neuron=neuron, name=Name(self._names[numbered], row.name.feature))


@lru_cache(maxsize=16)
def cut_columns(cuts: tuple[Cut, ...]) -> CutColumns:
    """Return the cut columns that a list of cuts describes."""
    return CutColumns(cuts)


@lru_cache(maxsize=16)
def read_columns(by_time: tuple[CutColumns, ...]) -> CutColumns:
    """Return the cut columns for reading rows that were learned under successive lists of cuts.

    `by_time`: the cut columns that were in force one after the other, the present ones last.
    """
    last = {*by_time[-1].cuts}
    recut = {cut.word for one in by_time for cut in last.difference(one.cuts)}
    return CutColumns(by_time[-1].cuts, recut) if recut else by_time[-1]


def columns_in(names: Iterable[str], cuts: Sequence[Cut] = ()) -> CutColumns:
    """Return the cut columns of a store, by the names that it has and the cuts of its layout.

    Columns that came from another store may have more parts than in `cuts`. Names of parts may be
    forged, so the number of all parts is bounded; beyond it, only the columns with the most names
    count as cut.
    """
    most, recut = {cut.word: cut.parts for cut in cuts}, set[str]()
    met, last = Counter[str](), dict[str, int]()
    for part in map(part_of, (name for name in names if MARK in name)):
        if part is not None:
            met[part.word] += 1
            last[part.word] = max(part.number, last.get(part.word, 0))
    room = MOST_ALL - sum(most.values())
    for word in sorted(met, key=lambda word: (-met[word], word)):
        parts, before = 1 << last[word].bit_length(), most.get(word, 0)
        if before < parts <= room + before:
            most[word] = parts
            recut.add(word)
            room -= parts - before
    return CutColumns([Cut(*pair) for pair in sorted(most.items())], recut)


def whole(delta: Delta) -> Delta:
    """Move the connections of all parts back to their columns."""
    found = {word: part_of(name) for word, name in delta.names.items() if MARK in name}
    parts = {word: part.word for word, part in sorted(found.items()) if part is not None}
    if not parts:
        return delta
    at, is_part = _found(delta.concept, np.array([*parts], np.uint64))
    home = np.array([word_id(word) for word in parts.values()], np.uint64)
    held = np.flatnonzero(is_part[delta.source])
    stays = ~is_part
    stays[delta.target] = True  # only a lying peer's connections have a part as target
    gone = parts.keys() - {*delta.concept[stays].tolist()}
    names = {word: text for word, text in delta.names.items() if word not in gone}
    names |= {word_id(word): word for word in parts.values()}
    return _rehomed(delta, stays, held, home[at[delta.source[held]]], names)


def _found(some: Ids, others: Ids) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return, for each value, its position in `others`, which must ascend, and if it is there."""
    at = np.minimum(np.searchsorted(others, some), len(others) - 1)
    return at, others[at] == some


def _rehomed(
    delta: Delta, kept: npt.NDArray[np.bool_], held: Ints, home: Ids, names: Names
) -> Delta:
    """Move some connections to the same features of other columns.

    `home` is the concept of the new source of each connection in `held`. The result has the neurons
    in `kept` and the new sources; the other neurons must have no further connections.
    """
    concept, feature, slot = unique_neurons(
        np.concatenate([delta.concept[kept], home]),
        np.concatenate([delta.feature[kept], delta.feature[delta.source[held]]]),
    )
    before = np.zeros(delta.neurons, np.int64)  # the new index of each neuron that stays
    before[kept] = slot[: len(slot) - len(held)]
    count = np.zeros(len(concept), np.int64)
    count[before[kept]] = delta.count[kept]
    source = before[delta.source]
    source[held] = slot[len(slot) - len(held) :]
    branch, segment = delta.branch.astype(np.int64), delta.segment.astype(np.int64)
    key = ConnectionKey.for_sizes(
        len(concept), int(branch.max(initial=0)) + 1, int(segment.max(initial=0)) + 1
    )
    packed = key.pack(source, before[delta.target], branch, segment)
    order = np.argsort(packed, kind="stable")
    packed = packed[order]
    first = np.flatnonzero(first_of_runs(packed))
    strength = np.add.reduceat(delta.strength[order], first)
    return key.delta(concept, feature, count, packed[first], strength, names)
