"""How long what waits will take, by what took how long."""

import pytest

from giaann_p2p.node.replication.effort import EACH, Effort


def test_nothing_is_known_before_the_first() -> None:
    assert Effort().of(1000, 1 << 30) == 0.0


def test_what_waits_takes_as_long_as_what_was_taken_in() -> None:
    effort = Effort()
    effort.took(10, 6 * EACH, 1.6)
    assert effort.of(10, 6 * EACH) == pytest.approx(1.6)
    assert effort.of(0, EACH) == effort.of(1, 0) == pytest.approx(0.1)
    assert repr(effort) == "<Effort: 0.1000 s for an update, 25.600 s a MiB>"


def test_what_took_long_lately_counts_and_one_mishap_does_not_for_long() -> None:
    effort = Effort()
    for _ in range(20):
        effort.took(1, 0, 0.1)
    effort.took(1, 0, 2.1)
    assert effort.of(1, 0) == pytest.approx(0.7, rel=0.01)
    for _ in range(20):
        effort.took(1, 0, 0.1)
    assert effort.of(1, 0) == pytest.approx(0.1, rel=0.01)


def test_many_that_share_one_wait_for_the_disk_tell_more_than_those_that_waited_alone() -> None:
    effort = Effort()
    for _ in range(20):
        effort.took(1, 0, 0.5)
    assert effort.of(64, 0) == pytest.approx(32.0)
    effort.took(64, 0, 0.5)
    assert effort.of(64, 0) < 1.7
