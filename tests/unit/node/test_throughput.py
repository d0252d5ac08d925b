"""The rate at which a peer works, while it works."""

import pytest

from giaann_p2p.node.throughput import Throughput


class Times:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_idle_time_does_not_count() -> None:
    times = Times()
    one = Throughput(times)
    assert one.rate == 0
    for _ in range(3):
        one.begin()
        times.now += 2
        one.end(64)
        times.now += 1000
    assert one.rate == pytest.approx(32, rel=0.05)
    assert repr(one) == f"<Throughput: {one.rate:.1f} a second, 0 tasks in progress>"


def test_tasks_at_the_same_time_add_up() -> None:
    times = Times()
    one = Throughput(times)
    one.begin()
    one.begin()
    times.now += 2
    one.end(64)
    one.end(64)
    assert one.rate == pytest.approx(64, rel=0.05)
    assert one.whole == round(one.rate)
    one.begin()
    times.now += 1e-6
    one.end(1e18)
    assert one.whole == (1 << 32) - 1


def test_a_failed_task_lowers_the_rate_and_old_work_fades() -> None:
    times = Times()
    one = Throughput(times)
    one.begin()
    times.now += 1
    one.end(100)
    one.begin()
    times.now += 1
    one.end(0)
    assert one.rate == pytest.approx(50, rel=0.05)
    for _ in range(20):
        one.begin()
        times.now += 60
        one.end(60)
    assert one.rate == pytest.approx(1.0, rel=0.5)
    times.now -= 500  # a clock that was set back counts as no time
    one.begin()
    one.end(0)
    assert one.rate > 0
