"""What is done about a daemon that takes too much."""

from typing import Any

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.net.hive.daemon_limits import DaemonWatch, Figures, Remedy, WatchLimits

LIMITS = WatchLimits(memory=100, descriptors=10, far=3, busy=0.5, patience=30.0, flood=5)


def figures(**changes: Any) -> Figures:  # noqa: ANN401
    fields: dict[str, Any] = {"memory": 50, "descriptors": 5, "seconds": 0.0, "moved": 0}
    return Figures(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "act", "why"),
    [
        ({}, Remedy.NOTHING, ""),
        ({"memory": 100, "descriptors": 10}, Remedy.NOTHING, ""),
        ({"memory": 101}, Remedy.DISCONNECT, "p2pd takes 0 MB"),
        ({"descriptors": 11}, Remedy.DISCONNECT, "p2pd holds 11 files open"),
        ({"memory": 301}, Remedy.RESTART, "p2pd takes 0 MB, far above its limit"),
        ({"descriptors": 31}, Remedy.DISCONNECT, "p2pd holds 31 files open"),  # sockets, half open
    ],
)
def test_what_it_takes_at_once(changes: dict[str, int], act: Remedy, why: str) -> None:
    advice = DaemonWatch(LIMITS, now=0.0).look(1.0, figures(**changes))
    assert (advice.act, advice.why) == (act, why)


@pytest.mark.parametrize(
    ("strangers", "began", "looks", "last"),
    [
        (5, 0.0, [40.0, 69.0], Remedy.DISCONNECT),  # not for 30 s yet
        (5, 0.0, [40.0, 70.0], Remedy.RESTART),
        (5, 50.0, [60.0, 100.0], Remedy.DISCONNECT),  # it was started 50 s before
        (5, 50.0, [60.0, 110.0], Remedy.RESTART),
        (4, 0.0, [40.0, 3599.0], Remedy.DISCONNECT),  # no flood: it may be honest
        (4, 0.0, [40.0, 3600.0], Remedy.RESTART),
    ],
)
def test_an_excess_that_lasts(
    strangers: int, began: float, looks: list[float], last: Remedy
) -> None:
    watch = DaemonWatch(LIMITS, now=began)
    *before, end = looks
    for now in before:
        assert watch.look(now, figures(memory=101)).act is Remedy.DISCONNECT
    watch.came(strangers)
    assert watch.look(end, figures(memory=101)).act is last


def test_an_excess_that_ended_between_does_not_last() -> None:
    watch = DaemonWatch(LIMITS, now=0.0)
    watch.came(100)
    assert watch.look(100.0, figures(memory=101)).act is Remedy.DISCONNECT
    assert watch.look(101.0, figures(memory=99)).act is Remedy.NOTHING
    assert watch.look(131.0, figures(memory=101)).act is Remedy.DISCONNECT


@pytest.mark.parametrize(
    ("cores", "moved", "acts"),
    [
        (0.4, 0, [Remedy.NOTHING] * 4),
        (0.8, 1 << 30, [Remedy.NOTHING] + [Remedy.DISCONNECT] * 3),  # a flood, or honest bulk
        (0.8, 0, [Remedy.NOTHING] + [Remedy.DISCONNECT] * 2 + [Remedy.RESTART]),  # it hangs
    ],
)
def test_a_processor_that_is_kept_busy(cores: float, moved: int, acts: list[Remedy]) -> None:
    watch = DaemonWatch(LIMITS, now=0.0)
    found = [
        watch.look(now, figures(seconds=cores * now, moved=int(moved * now))).act
        for now in (0.0, 15.0, 30.0, 45.0)
    ]
    assert found == acts


def test_limits_are_more_than_nothing() -> None:
    with pytest.raises(UsageError, match="patience must be more than 0"):
        WatchLimits(patience=0.0)
