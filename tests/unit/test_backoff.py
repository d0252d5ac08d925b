"""How long to pause after failures in a row."""

from math import inf

import pytest

from giaann_p2p.backoff import Backoff

BACKOFF = Backoff(first=0.5, longest=10.0)


@pytest.mark.parametrize(
    ("failures", "seconds"), [(0, 0), (1, 0.5), (2, 1), (5, 8), (6, 10), (100_000, 10)]
)
def test_each_failure_doubles_the_pause_up_to_the_longest(failures: int, seconds: float) -> None:
    assert BACKOFF._replace(failures=failures).pause == seconds


def test_a_pause_begins_with_its_failure() -> None:
    assert not BACKOFF.holds(-1e9)
    once = BACKOFF.failed(10.0)
    assert (once.since, once.until) == (10.0, 10.5)
    assert [once.holds(now) for now in (10.0, 10.4, 10.5)] == [True, True, False]
    assert once.failed(20.0).until == 21.0
    assert BACKOFF.failures == 0  # the value itself never changes


def test_without_a_longest_pause_it_grows_for_ever() -> None:
    pauses = [Backoff(1.0, failures=failures).pause for failures in (1, 2, 12, 64, 100_000)]
    assert pauses == sorted(pauses)
    assert pauses[2] == 2048.0
    assert pauses[-1] < inf


def test_a_loop_that_sleeps_needs_no_time() -> None:
    backoff, pauses = BACKOFF, []
    for _ in range(3):
        backoff = backoff.failed()
        pauses.append(backoff.pause)
    assert pauses == [0.5, 1.0, 2.0]
