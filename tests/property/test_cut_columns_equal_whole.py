"""Any knowledge, and columns cut in any way: nothing is lost, and every row says what it said."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.rows import DeltaRows, Neuron, Question, Row
from giaann_p2p.store.cut_columns import CutColumns, columns_in, cut_columns, whole
from giaann_p2p.store.cuts import MARK, Cut
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.store.whole_rows import WholeRows, whole_rows
from giaann_p2p.swarm.reading.row_match import same
from tests.helpers import SMALL, assert_same
from tests.helpers_random import CONCEPTS
from tests.helpers_store import JOB, NEURONS, drawn_deltas

parts = st.sampled_from([0, 2, 4, 16])
cuts = st.tuples(*[parts] * len(CONCEPTS)).map(
    lambda sizes: tuple(Cut(word, n) for word, n in zip(CONCEPTS, sizes, strict=True) if n)
)
deltas = st.lists(drawn_deltas, min_size=1, max_size=4)


def rows_of(delta: Delta, columns: CutColumns) -> Sequence[Row | None]:
    return WholeRows(DeltaRows(delta), columns).read(Question(NEURONS))


def part_of(concept: int, feature: int, parts: int) -> int:
    """Return a target's part: the rule as it is written, one step after the other."""
    word = (1 << 64) - 1
    x = (concept * 0x9E3779B97F4A7C15 + feature) & word
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & word
    x = (x ^ x >> 27) * 0x94D049BB133111EB & word
    return (x ^ x >> 31) % parts


@given(drawn_deltas, cuts)
def test_what_was_cut_is_whole_again_to_the_byte(delta: Delta, cuts: tuple[Cut, ...]) -> None:
    columns = cut_columns(cuts)
    cut = columns.cut(delta)
    assert_same(whole(cut), delta)
    assert_same(columns.cut(cut), cut)
    assert cut.connections == delta.connections
    assert int(cut.count.sum()) == int(delta.count.sum())


@given(deltas, cuts)
def test_sums_of_what_was_cut_are_cut_sums(deltas: list[Delta], cuts: tuple[Cut, ...]) -> None:
    columns = cut_columns(cuts)
    assert_same(total([*map(columns.cut, deltas)]), columns.cut(total(deltas)))


@given(drawn_deltas, cuts)
def test_each_connection_is_in_the_part_of_its_target(delta: Delta, cuts: tuple[Cut, ...]) -> None:
    cut, sizes = cut_columns(cuts).cut(delta), {word_id(cut.word): cut.parts for cut in cuts}
    for source, target in zip(cut.source.tolist(), cut.target.tolist(), strict=True):
        word, _, number = cut.names[int(cut.concept[source])].partition(MARK)
        right = part_of(
            int(cut.concept[target]), int(cut.feature[target]), sizes.get(word_id(word), 1)
        )
        assert right == int(number or 0)


@given(deltas, cuts)
def test_rows_of_deltas_and_stores_are_as_if_nothing_was_cut(
    deltas: list[Delta], cuts: tuple[Cut, ...]
) -> None:
    columns, known = cut_columns(cuts), total(deltas)
    wanted = DeltaRows(known).read(Question(NEURONS))
    store = Store.in_memory(SMALL, Layout(shards=4, cuts=cuts))
    store.hold(range(4))
    for number, delta in enumerate(deltas):
        store.apply([Update(JOB, number, store.shards, columns.cut(delta))])
    cut = total([*map(columns.cut, deltas)])
    for told in (
        rows_of(cut, columns),
        rows_of(cut, columns_in(cut.names.values())),
        whole_rows(store).read(Question(NEURONS)),
    ):
        assert all(map(same, wanted, told))
    assert_same(whole(store.content(*range(4)).delta), store.knowledge())


@given(drawn_deltas, cuts)
def test_what_is_known_of_parts_is_what_their_holders_have(
    delta: Delta, cuts: tuple[Cut, ...]
) -> None:
    columns = cut_columns(cuts)
    there = DeltaRows(columns.cut(delta))
    rows = {row.neuron: row for row in DeltaRows(delta).read(Question(NEURONS)) if row}
    known = columns.known(rows)
    assert [*known] == columns.asked(rows)
    for row, told in zip(known.values(), there.read(Question([*known])), strict=True):
        assert same(row, told) if told is not None else not (row.count or len(row.target))
        assert np.all(np.diff(row.target) >= 0)
    joined = columns.joined(rows, [*known.values()])
    assert all(map(same, rows.values(), joined))
    assert all(row is not None and np.all(np.diff(row.target) >= 0) for row in joined)


@given(drawn_deltas, cuts)
def test_neither_names_nor_neurons_are_left_over(delta: Delta, cuts: tuple[Cut, ...]) -> None:
    cut = cut_columns(cuts).cut(delta)
    there = (cut.count > 0) | (cut.lengths > 0)
    there[cut.target] = True
    assert there.all()
    used = {*cut.concept.tolist()}
    assert all(word in used for word, name in cut.names.items() if MARK in name)


def test_the_neurons_asked_for_are_unlike_each_other() -> None:
    columns = cut_columns(tuple(Cut(word, 16) for word in CONCEPTS))
    asked = columns.asked(NEURONS)
    assert len({*asked}) == len(asked) == 16 * len(NEURONS)
    assert columns.asked([Neuron(1, 2)]) == [Neuron(1, 2)]
