"""Logarithms from a table of whole numbers: they are precise, and stay what they are."""

import hashlib
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model.subwords.logarithm import (
    LOG_UNITS,
    exponentials,
    log_table,
    logarithms,
    power_table,
    tanh,
)


def exact(value: float) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        return Decimal(value).ln() * LOG_UNITS


@given(st.lists(st.floats(2.0**-30, 2.0**30), min_size=1, max_size=50))
def test_logarithms_are_right_to_two_to_the_minus_43(values: list[float]) -> None:
    for value, found in zip(values, logarithms(np.array(values)).tolist(), strict=True):
        assert abs(found - exact(value)) < 1 << 5


def test_logarithms_of_powers_of_two_are_multiples_of_one_entry() -> None:
    powers = np.ldexp(1.0, np.arange(-60, 61))
    assert np.array_equal(logarithms(powers), np.arange(-60, 61) * log_table()[-1])


def test_every_entry_of_the_table_is_the_nearest_whole_number() -> None:
    for i, entry in enumerate(log_table().tolist()):
        assert abs(entry - exact(1 + i / 2048)) <= Decimal("0.500001")


def test_the_table_is_pinned() -> None:
    digest = hashlib.blake2b(log_table().astype("<i8").tobytes(), digest_size=16).hexdigest()
    assert digest == "24912a7d31849434dc450be1bdbdc2f7"


def test_logarithms_never_fall_where_values_rise() -> None:
    steps = np.sort(np.random.default_rng(1).uniform(1e-9, 10, 20_000))
    assert (np.diff(logarithms(steps)) >= 0).all()


def test_every_power_of_the_table_is_the_nearest_number() -> None:
    table = power_table().tolist()
    with localcontext() as context:
        context.prec = 40
        assert table == [float((Decimal(-i) / 8192).exp()) for i in range(len(table))]
    assert table[-1] > 0.5 > (table[-1] * table[1])  # the last one before ln 2


def test_the_powers_are_pinned() -> None:
    powers = exponentials(-np.arange(0, 45 * LOG_UNITS, LOG_UNITS // 97))
    digest = hashlib.blake2b(powers.astype("<f8").tobytes(), digest_size=16).hexdigest()
    assert digest == "498c5f7d816dd8d890c56cb362f830ed"


def test_powers_never_rise_where_logarithms_fall() -> None:
    logs = np.sort(np.random.default_rng(1).integers(-40 * LOG_UNITS, 1, 20_000))
    edges = -np.arange(1, 60) * int(log_table()[-1])
    for one in (logs, np.sort(np.concatenate([edges - 1, edges, edges + 1]))):
        assert (np.diff(exponentials(one)) >= 0).all()


@pytest.mark.parametrize("x", [0.0, 1e-9, 0.005, 0.5, 1.0, 3.0, 10.0, 19.9, 20.0, 20.1, 1e6])
def test_tanh_is_right_to_the_last_digits(x: float) -> None:
    with localcontext() as context:
        context.prec = 60
        power = (Decimal(min(x, 60)) * 2).exp()
        wanted = (power - 1) / (power + 1)
    assert tanh(np.array([x]))[0] == pytest.approx(float(wanted), rel=5e-16)
