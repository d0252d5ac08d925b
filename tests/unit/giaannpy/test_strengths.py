"""Fractions and units: counts are exact, and what is no count is noticed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model.spec import increment
from giaann_p2p.solo.giaannpy.strengths import units_of, values_of
from giaann_p2p.solo.giaannpy.tensors import Fractions

distances = st.integers(1, 5)


def added(distance: int, count: int) -> float:
    """Add an increment to a fraction of 32 bits, time after time, as the reference does."""
    return float(np.cumsum(np.full(count, 10 / (distance + 1), np.float32))[-1])


def one(values: float, segment: int) -> tuple[int, bool]:
    units, uncertain = units_of(np.array([values]), np.array([segment]))
    return int(units[0]), bool(uncertain[0])


@pytest.mark.parametrize("distance", range(1, 6))
def test_every_count_that_the_reference_reaches_is_found(distance: int) -> None:
    counts = np.arange(1, 4001)
    sums: Fractions = np.cumsum(np.full(4000, 10 / (distance + 1), np.float32)).astype(np.float64)
    units, uncertain = units_of(sums, np.full(4000, 9 - distance))
    assert units.tolist() == (counts * increment(distance)).tolist()
    assert not uncertain.any()


@given(distances, st.integers(1, 1 << 22))
def test_a_count_is_written_so_that_it_is_read(distance: int, count: int) -> None:
    units = np.array([count * increment(distance)])
    segment = np.array([9 - distance])
    assert one(float(values_of(units, segment)[0]), 9 - distance) == (int(units[0]), False)


@given(st.integers(0, 3), st.integers(1, 1 << 47))
def test_a_sum_by_column_is_written_so_that_it_is_read(segment: int, units: int) -> None:
    assert one(float(values_of(np.array([units]), np.array([segment]))[0]), segment) == (
        units,
        False,
    )


@given(distances, st.integers(1, 4000), st.floats(0.01, 0.99))
def test_what_is_no_count_is_noticed(distance: int, count: int, part: float) -> None:
    value = float(np.float32(added(distance, count) + part * 10 / (distance + 1)))
    nearest = max(1, round(value * (distance + 1) / 10))
    off = abs(value * (distance + 1) / 10 - nearest)
    allowed = nearest * (nearest + 3) / 2 * 2**-24
    assert one(value, 9 - distance) == (nearest * increment(distance), off > allowed)


def test_large_sums_that_may_be_another_count_are_noticed() -> None:
    value = added(2, 1_000_000)
    assert abs(value * 0.3 - 1_000_000) > 1000
    assert one(value + 1, 7)[1]


def test_one_increment_by_column_is_exact() -> None:
    """Longer sums are off by half a unit for each increment at most."""
    for distance in range(1, 160):
        assert one(float(np.float32(10 / (distance + 1))), 3) == (increment(distance), False)


def test_the_same_sum_by_column_may_come_from_other_distances() -> None:
    third = np.float32(10 / 3)
    assert float(third + third + third) == 10.0
    assert one(10.0, 3)[0] == 2 * increment(1) == 3 * increment(2) + 1
