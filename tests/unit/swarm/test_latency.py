"""Who answers quickly."""

import pytest

from giaann_p2p.swarm import latency
from giaann_p2p.swarm.latency import Latencies
from tests.helpers_swarm import A, B, C


def test_the_median_and_what_is_late() -> None:
    latencies = Latencies()
    for hundredths in (9, 1, 5, 3, 7):
        latencies.took(A, hundredths / 100)
    assert latencies.usual(A) == 0.05
    assert latencies.late(A) == 0.07
    latencies.took(A, 4.0)
    assert latencies.late(A) == 0.09  # one that never came makes nobody wait for seconds


def test_who_was_never_asked_is_worth_a_try() -> None:
    latencies = Latencies()
    latencies.took(A, 0.06)
    assert latencies.usual(B) < latencies.usual(A)
    assert latencies.late(B) > 0


def test_nobody_is_late_at_once() -> None:
    latencies = Latencies()
    latencies.took(A, 0.0001)
    assert latencies.late(A) == 0.01


def test_only_the_last_answers_count() -> None:
    latencies = Latencies()
    for _ in range(64):
        latencies.took(A, 3.0)
    assert latencies.usual(A) == 3.0
    for _ in range(64):
        latencies.took(A, 0.5)
    assert (latencies.usual(A), latencies.late(A)) == (0.5, 0.5)


def test_peers_who_were_not_asked_for_long_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "_MOST_PEERS", 2)
    latencies = Latencies()
    for peer in (A, B, A, C):
        latencies.took(peer, 3.0)
    assert [latencies.usual(peer) for peer in (A, B, C)] == [3.0, Latencies().usual(B), 3.0]
