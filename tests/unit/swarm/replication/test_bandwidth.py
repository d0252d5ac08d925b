"""Bytes a second."""

from giaann_p2p.swarm.replication.bandwidth import Bandwidth


def test_a_second_is_at_hand_and_debts_are_paid_by_time() -> None:
    bandwidth = Bandwidth(100.0, 10.0)
    assert bandwidth.free(10.0)
    bandwidth.spent(100)
    assert not bandwidth.free(10.0)
    assert bandwidth.free(10.5)
    bandwidth.spent(250)  # the last may be larger than what is left
    assert not bandwidth.free(12.0)
    assert not bandwidth.free(12.5)
    assert bandwidth.free(12.51)


def test_nothing_is_saved_up_for_longer_than_a_second() -> None:
    bandwidth = Bandwidth(100.0, 0.0)
    assert bandwidth.free(1000.0)
    bandwidth.spent(100)
    assert not bandwidth.free(1000.0)


def test_a_rate_of_nothing_is_no_limit() -> None:
    bandwidth = Bandwidth(0.0, 0.0)
    bandwidth.spent(1 << 40)
    assert bandwidth.free(0.0)
