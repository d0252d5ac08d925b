"""Slices of a row have each target once, and together they are the row."""

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.row_slice import EVERYTHING, RowSlice, whole
from giaann_p2p.model.rows import Question, Row
from giaann_p2p.store.codec.sheaf import Sheaf, SheafRows, decode, encode
from tests.unit.store.codec.test_sheaf import BRANCHES, HERE, LIMITS, SEGMENTS, bound, drawn
from tests.unit.store.memory.test_columns import assert_row


def cut(halvings: int) -> list[RowSlice]:
    slices = [EVERYTHING]
    for _ in range(halvings):
        slices = [half for one in slices for half in one.halves]
    return slices


ALL = Question(HERE)


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


def part_of(row: Row, within: RowSlice) -> Row:
    """Return a slice of a row as the dumbest way would."""
    there = within.has(row.target_concept, row.target_feature)
    kept = there[row.target]
    rank = np.cumsum(there) - 1
    return replace(
        row,
        target_concept=row.target_concept[there],
        target_feature=row.target_feature[there],
        target=rank[row.target[kept]],
        branch=row.branch[kept],
        segment=row.segment[kept],
        strength=row.strength[kept],
    )


ROWS = [row for seed in range(10) for row in decoded(bound(drawn(seed), seed)).read(ALL) if row]


@pytest.mark.parametrize("halvings", range(4))
def test_the_slices_of_a_row_are_the_row(halvings: int) -> None:
    for row in ROWS:
        assert_row(whole([part_of(row, one) for one in cut(halvings)]), row)


def test_of_slices_from_two_moments_the_later_count_counts() -> None:
    before = ROWS[0]
    after = replace(before, count=before.count + 1)
    for slices in ([before, None, after], [after, before]):
        joined = whole(slices)
        assert joined is not None
        assert joined.count == after.count
    assert whole([None, before]) is before
    assert whole([None, None]) is None
