"""Which rows count as true: those that lie between two that honest peers returned."""

import pytest
from msgspec.structs import replace

from giaann_p2p.model.row_slice import EVERYTHING, RowSlice, whole
from giaann_p2p.model.rows import DeltaRows, Neuron, Question, Row
from giaann_p2p.sim.lessons import lessons_of
from giaann_p2p.sim.told_rows import ToldRows, sliced
from giaann_p2p.store.layout import Layout

LESSONS = lessons_of(Layout(shards=1))
NEURONS = [one for one in LESSONS.neurons(0) if one in {*LESSONS.neurons(46)}]  # which grow
HALVES = EVERYTHING.halves


def rows(*chunks: int) -> list[Row]:
    found = DeltaRows(LESSONS.content(0, chunks)).read(Question(NEURONS))
    return [row for row in found if row is not None]


def parts(within: RowSlice, *chunks: int) -> list[Row | None]:
    return [sliced(row, within) for row in rows(*chunks)]


@pytest.fixture
def told() -> ToldRows:
    found = ToldRows()
    found.add(NEURONS, [*rows(0)], EVERYTHING, 5.0)
    return found


def untrue(told: ToldRows, found: list[Row | None], asked: float = 0.0) -> list[Neuron]:
    return told.untrue(NEURONS, found, asked)


def test_rows_that_honest_peers_told_are_true(told: ToldRows) -> None:
    told.add(NEURONS, [*rows(0, 46, 9)], EVERYTHING, 6.0)
    for chunks in ([0], [0, 46], [0, 46, 9]):  # what lies between two of theirs, too
        assert untrue(told, [*rows(*chunks)]) == []


def test_rows_that_nobody_honest_told_are_wrong(told: ToldRows) -> None:
    one, *others = rows(0)
    assert untrue(told, [None, *others]) == NEURONS[:1]
    assert untrue(told, [replace(one, count=one.count + 1), *others]) == NEURONS[:1]
    assert untrue(told, [*rows(0, 46)]) != []


def test_what_was_told_before_it_was_asked_for_does_not_count(told: ToldRows) -> None:
    assert untrue(told, [*rows(0)], asked=5.1) == NEURONS


def test_slices_may_come_from_different_moments() -> None:
    told = ToldRows()
    told.add(NEURONS, parts(HALVES[0], 0), HALVES[0], 5.0)
    told.add(NEURONS, parts(HALVES[1], 0, 46), HALVES[1], 6.0)
    joined = map(whole, zip(parts(HALVES[0], 0), parts(HALVES[1], 0, 46), strict=True))
    assert untrue(told, list(joined)) == []
    counted_more = [replace(row, count=99) for row in rows(0, 46)]
    assert untrue(told, [*counted_more]) == NEURONS
    wrong = map(whole, zip(parts(HALVES[0], 0, 46), parts(HALVES[1], 0, 46), strict=True))
    assert untrue(told, list(wrong)) != []


def test_a_slice_says_nothing_of_other_slices() -> None:
    told = ToldRows()
    for half in HALVES:
        told.add(NEURONS, parts(half, 0, 46), half, 5.0)
    both = zip(NEURONS, rows(0), rows(0, 46), strict=True)
    grown = {neuron for neuron, before, after in both if _has_more(before, after)}
    assert grown  # rows of which chunk 46 adds to the second half
    older = map(whole, zip(parts(HALVES[0], 0, 46), parts(HALVES[1], 0), strict=True))
    assert grown <= {*untrue(told, list(older))}


def _has_more(before: Row, after: Row) -> bool:
    strengths = [int(sliced(row, HALVES[1]).strength.sum()) for row in (before, after)]
    return strengths[1] > strengths[0]
