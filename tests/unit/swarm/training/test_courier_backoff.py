"""Pairs that are left alone for a while."""

import pytest

from giaann_p2p.swarm.training import courier_backoff as module
from giaann_p2p.swarm.training.courier_backoff import CourierBackoff
from tests.helpers_swarm import A, B, C


def test_a_pair_is_avoided_longer_each_time_and_others_are_not() -> None:
    pairs = CourierBackoff()
    for now, pause in ((0.0, 15), (100.0, 30), (200.0, 60), (300.0, 120)):
        pairs.failed(A, B, now)
        assert pairs.holds(A, B, now + pause - 1)
        assert not pairs.holds(A, B, now + pause)
        assert not pairs.holds(B, A, now)
        assert not pairs.holds(A, C, now)
    pairs.worked(A, B)
    pairs.failed(A, B, 400.0)
    assert not pairs.holds(A, B, 415.0)


def test_only_so_many_pairs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 2)
    pairs = CourierBackoff()
    pairs.failed(A, B, 0.0)
    pairs.failed(A, C, 0.0)
    pairs.failed(A, B, 0.0)  # again, so that A and C are the oldest pair
    pairs.failed(B, C, 0.0)
    held = [pairs.holds(*pair, 1.0) for pair in ((A, B), (A, C), (B, C))]
    assert held == [True, False, True]
