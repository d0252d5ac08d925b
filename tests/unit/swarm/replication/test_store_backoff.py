"""Leaving a store alone that cannot take anything in."""

import pytest

from giaann_p2p.errors import DiskError, GiaannError, StoreError, StoreFull, UsageError
from giaann_p2p.swarm.replication.store_backoff import StoreBackoff

NOW = 1000.0
FULL = StoreFull("the store is full")


@pytest.mark.parametrize("error", [FULL, DiskError("no space left")])
def test_each_failure_costs_twice_as_long(error: GiaannError) -> None:
    store_backoff = StoreBackoff()
    assert not store_backoff.rests(NOW)
    at = NOW
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        assert store_backoff.told(error, at)
        assert store_backoff.rests(at + pause - 0.01)
        at += pause
        assert not store_backoff.rests(at)


def test_failures_of_writes_on_their_way_count_as_one() -> None:
    store_backoff = StoreBackoff()
    for at in (0, 0.5, 0.9):
        assert store_backoff.told(FULL, NOW + at)
    assert not store_backoff.rests(NOW + 1)
    assert store_backoff.told(FULL, NOW + 1)
    assert store_backoff.rests(NOW + 2.9)
    assert not store_backoff.rests(NOW + 3)


def test_a_success_ends_it() -> None:
    store_backoff = StoreBackoff()
    store_backoff.told(FULL, NOW)
    store_backoff.told(FULL, NOW + 1)
    assert not store_backoff.told(None, NOW + 1.5)
    assert not store_backoff.rests(NOW + 1.5)
    store_backoff.told(FULL, NOW + 2)
    assert not store_backoff.rests(NOW + 3)


@pytest.mark.parametrize("error", [UsageError("each has others"), StoreError("one is wrong")])
def test_what_is_not_the_stores_fault_is_none(error: GiaannError) -> None:
    store_backoff = StoreBackoff()
    assert not store_backoff.told(error, NOW)
    assert not store_backoff.rests(NOW)
