"""Slices of a row have each target once, and together they are the row."""

import numpy as np
import pytest

from giaann_p2p.model.row_slice import EVERYTHING, RowSlice, whole
from giaann_p2p.model.rows import Question
from giaann_p2p.store.codec.sheaf import Sheaf, SheafRows, decode, encode
from tests.unit.store.codec.test_sheaf import BRANCHES, HERE, LIMITS, SEGMENTS, bound, drawn
from tests.unit.store.memory.test_columns import assert_row


def cut(halvings: int) -> list[RowSlice]:
    slices = [EVERYTHING]
    for _ in range(halvings):
        slices = [half for one in slices for half in one.halves]
    return slices


def decoded(rows: Sheaf) -> SheafRows:
    return decode(encode(rows, BRANCHES, SEGMENTS), LIMITS)


@pytest.mark.parametrize("halvings", range(5))
def test_each_target_is_in_one_slice_and_slices_are_about_equal(halvings: int) -> None:
    rng = np.random.default_rng(halvings)
    concept = rng.integers(0, 1 << 64, 1 << 12, np.uint64)
    concept[::2] = 7  # of one concept, as in its own column
    feature = rng.integers(0, 1 << 64, 1 << 12, np.uint64)
    feature[::3] = 0
    slices = cut(halvings)
    assert {(one.halvings, one.number) for one in slices} == {
        (halvings, number) for number in range(1 << halvings)
    }
    there = np.array([one.has(concept[1::2], feature[1::2]) for one in slices])
    assert there.sum(axis=0).tolist() == [1] * (1 << 11)
    sizes = there.sum(axis=1)
    assert sizes.max() < 2 * sizes.min()


@pytest.mark.parametrize("halvings", range(4))
@pytest.mark.parametrize("seed", range(10))
def test_the_slices_of_rows_are_the_rows(seed: int, halvings: int) -> None:
    rows = bound(drawn(seed), seed)
    found = [
        decoded(part).read(Question(HERE))
        for part in (rows.only_to(one.has(rows.concept, rows.feature)) for one in cut(halvings))
    ]
    wanted = decoded(rows).read(Question(HERE))
    for slices, row in zip(zip(*found, strict=True), wanted, strict=True):
        assert_row(whole(slices), row)


def test_a_slice_without_targets_is_a_row_too() -> None:
    rows = bound(drawn(1), 1)
    none = rows.only_to(np.zeros(len(rows.concept), np.bool_))
    assert len(none.target) == 0
    assert none.counts.tolist() == rows.counts.tolist()
    assert len(none.concept) == len(rows.row)


def test_of_slices_from_two_moments_the_later_count_counts() -> None:
    rows = bound(drawn(3), 3)
    later = rows._replace(counts=rows.counts + 1)
    before, after = (
        next(row for row in decoded(one).read(Question(HERE)) if row) for one in (rows, later)
    )
    for slices in ([before, None, after], [after, before]):
        joined = whole(slices)
        assert joined is not None
        assert joined.count == after.count
    assert whole([None, before]) is before
    assert whole([None, None]) is None
