"""Columns that were cut while they were learned: nothing moves, and rows say what they said."""

from dataclasses import replace

import pytest
from msgspec import structs

from giaann_p2p.model.delta import Delta, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.ids import word_id
from giaann_p2p.model.rows import DeltaRows, Question, Row
from giaann_p2p.store.cut_columns import CutColumns, columns_in, cut_columns, read_columns, whole
from giaann_p2p.store.cuts import MARK, MOST_PARTS, Cut
from giaann_p2p.swarm.reading.row_match import same
from tests.helpers_cut import BEE, lesson, neurons

FORMS: list[tuple[Cut, ...]] = [(), (Cut("bee", 4),), (Cut("bee", 16), Cut("elk", 2))]
"""The cuts in force one after the other."""


LESSONS = [lesson(number, words=40, before=20, after=10) for number in range(6)]
WHOLE = total(LESSONS)
LEARNED = total([cut_columns(FORMS[n // 2]).cut(one) for n, one in enumerate(LESSONS)])
"""The sum of two lessons in each form."""
NEURONS = neurons(WHOLE)


def read(columns: CutColumns, delta: Delta) -> list[Row | None]:
    rows = DeltaRows(delta).read(Question(columns.asked(NEURONS)))
    return columns.joined(NEURONS, rows)


def targets(row: Row | None) -> list[tuple[int, int]]:
    assert row is not None
    return [*zip(row.target_concept.tolist(), row.target_feature.tolist(), strict=True)]


def test_the_lessons_lie_in_parts_of_all_forms() -> None:
    parts = [name for name in LEARNED.names.values() if MARK in name]
    assert {f"bee{MARK}3", f"bee{MARK}15", f"elk{MARK}1"} <= {*parts}
    assert len(parts) == 16
    assert digest(LEARNED) != digest(WHOLE)


@pytest.mark.parametrize(
    "columns",
    [read_columns(tuple(map(cut_columns, FORMS))), columns_in(LEARNED.names.values(), FORMS[0])],
)
def test_rows_are_as_if_nothing_was_ever_cut(columns: CutColumns) -> None:
    for neuron, row, told in zip(
        NEURONS, DeltaRows(WHOLE).read(Question(NEURONS)), read(columns, LEARNED), strict=True
    ):
        assert same(row, told), neuron
    assert any(row and len(row.target) > 50 for row in read(columns, LEARNED))


def test_all_knowledge_is_as_if_nothing_was_ever_cut() -> None:
    back = whole(LEARNED)
    assert digest(back) == digest(WHOLE)
    assert back.names == WHOLE.names
    assert whole(WHOLE) is WHOLE


def test_a_column_whose_parts_never_changed_is_not_summed() -> None:
    always = read_columns((cut_columns(FORMS[1]),) * 2)
    assert not always._recut
    assert read_columns(tuple(map(cut_columns, FORMS)))._recut == {word_id("bee"), word_id("elk")}


def test_no_marks_are_sent_of_rows_that_cannot_be_cut_again() -> None:
    columns = read_columns(tuple(map(cut_columns, FORMS)))
    rows = {row.neuron: row for row in read(columns, LEARNED) if row is not None}
    known = columns.known(rows)
    assert known.keys() == {n for n in rows if n.concept not in (word_id("bee"), word_id("elk"))}


def test_targets_that_were_never_in_a_part_are_left_out() -> None:
    columns = read_columns(tuple(map(cut_columns, FORMS)))
    asked = columns.parts(BEE)
    rows = DeltaRows(LEARNED).read(Question(asked))
    honest = columns.joined([BEE], rows)
    at = next(n for n, row in enumerate(rows) if n > 1 and row is not None)
    foreign = next(row for n, row in enumerate(rows) if n not in (0, at) and row is not None)
    lie = structs.replace(foreign, neuron=asked[at])
    told = columns.joined([BEE], [lie if n == at else row for n, row in enumerate(rows)])
    assert not same(told[0], honest[0])  # what the part had is missing, but nothing is twice
    pairs = targets(told[0])
    assert len({*pairs}) == len(pairs)
    assert {*pairs} <= {*targets(honest[0])}


@pytest.mark.parametrize(
    "name",
    [
        MARK,
        f"{MARK}3",
        *(f"bee{MARK}{number}" for number in ("", "0", "01", "-1", "x", "\u0663", f"1{MARK}1")),
        f"bee{MARK}{MOST_PARTS}",
        f"bee{MARK}99999999",
    ],
)
def test_a_name_that_only_looks_like_that_of_a_part_is_none(name: str) -> None:
    assert not columns_in([name, "bee"])
    delta = replace(LESSONS[0], names=LESSONS[0].names | {word_id(name): name})
    assert whole(delta) is delta
