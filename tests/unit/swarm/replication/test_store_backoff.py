"""Leaving a store alone that cannot take anything in."""

import pytest

from giaann_p2p.errors import DiskError, GiaannError, StoreError, StoreFull, UsageError
from giaann_p2p.swarm.strain import Strain

NOW = 1000.0
FULL = StoreFull("the store is full")


@pytest.mark.parametrize("error", [FULL, DiskError("no space left")])
def test_each_failure_costs_twice_as_long(error: GiaannError) -> None:
    strain = Strain()
    assert not strain.rests(NOW)
    at = NOW
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        assert strain.told(error, at)
        assert strain.rests(at + pause - 0.01)
        at += pause
        assert not strain.rests(at)


def test_failures_of_writes_on_their_way_count_as_one() -> None:
    strain = Strain()
    for at in (0, 0.5, 0.9):
        assert strain.told(FULL, NOW + at)
    assert not strain.rests(NOW + 1)
    assert strain.told(FULL, NOW + 1)
    assert strain.rests(NOW + 2.9)
    assert not strain.rests(NOW + 3)


def test_a_success_ends_it() -> None:
    strain = Strain()
    strain.told(FULL, NOW)
    strain.told(FULL, NOW + 1)
    assert not strain.told(None, NOW + 1.5)
    assert not strain.rests(NOW + 1.5)
    strain.told(FULL, NOW + 2)
    assert not strain.rests(NOW + 3)


@pytest.mark.parametrize("error", [UsageError("each has others"), StoreError("one is wrong")])
def test_what_is_not_the_stores_fault_is_none(error: GiaannError) -> None:
    strain = Strain()
    assert not strain.told(error, NOW)
    assert not strain.rests(NOW)
