"""Who answers quickly."""

import pytest

from giaann_p2p.swarm.reading import latency
from giaann_p2p.swarm.reading.latency import Latencies
from tests.helpers_swarm import NOW, A, B, C


def test_the_median_and_what_is_late() -> None:
    latencies = Latencies()
    for hundredths in (9, 1, 5, 3, 7):
        latencies.took(A, hundredths / 100, NOW)
    assert latencies.usual(A, NOW) == 0.05
    assert latencies.late(A, NOW) == 0.07
    latencies.took(A, 4.0, NOW)
    assert latencies.late(A, NOW) == 0.09  # one that never came makes nobody wait for seconds


def test_who_was_never_asked_is_worth_a_try() -> None:
    latencies = Latencies()
    latencies.took(A, 0.06, NOW)
    assert latencies.usual(B, NOW) < latencies.usual(A, NOW)
    assert latencies.late(B, NOW) > 0


def test_nobody_is_late_at_once_and_who_always_is_makes_nobody_wait() -> None:
    latencies = Latencies()
    latencies.took(A, 0.0001, NOW)
    assert latencies.late(A, NOW) == 0.01
    for _ in range(9):
        latencies.took(B, 2.0, NOW)
    assert 2 * latencies.late(B, NOW) < 1.0


def test_only_the_last_answers_count() -> None:
    latencies = Latencies()
    for _ in range(64):
        latencies.took(A, 3.0, NOW)
    assert latencies.usual(A, NOW) == 3.0
    for _ in range(64):
        latencies.took(A, 0.2, NOW)
    assert (latencies.usual(A, NOW), latencies.late(A, NOW)) == (0.2, 0.2)


def test_who_was_slow_is_tried_again_after_a_while() -> None:
    latencies = Latencies()
    latencies.took(A, 3.0, NOW)
    latencies.took(A, 0.2, NOW + 30)
    assert latencies.usual(A, NOW + 61) == 0.2
    assert latencies.usual(A, NOW + 91) == latencies.usual(B, NOW + 91)


def test_peers_who_were_not_asked_for_long_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "_MOST_PEERS", 2)
    latencies = Latencies()
    for peer in (A, B, A, C):
        latencies.took(peer, 3.0, NOW)
    unknown = Latencies().usual(B, NOW)
    assert [latencies.usual(peer, NOW) for peer in (A, B, C)] == [3.0, unknown, 3.0]
