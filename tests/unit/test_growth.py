"""The judge of the soak: what it takes for growth, and what for work that comes and goes."""

import random

import pytest

from tests.e2e.growth import Grown, Sample, compared
from tests.e2e.soak import has_grown

MEGABYTE = 1 << 20


def life(resident: float = 0, files: float = 0, tasks: float = 0) -> list[Sample]:
    """Return a process seen for ten minutes; it grows by so much a minute, under work."""
    chance = random.Random(1)
    return [
        Sample(
            at,
            round((200 + 20 * (at < 100) + chance.random() * 30 + resident * at / 60) * MEGABYTE),
            round(40 + chance.randrange(8) + files * at / 60),
            round(30 + chance.randrange(60) + tasks * at / 60),
        )
        for at in range(0, 600, 5)
    ]


def test_work_that_comes_and_goes_is_no_growth() -> None:
    assert not has_grown(compared("p", life()))


@pytest.mark.parametrize("leak", [{"resident": 4}, {"files": 3}, {"tasks": 4}])
def test_a_leak_is(leak: dict[str, float]) -> None:
    assert has_grown(compared("p", life(**leak)))


def test_what_a_process_needs_at_first_is_no_growth() -> None:
    begins = [Sample(at, (50 + at // 2) * MEGABYTE, 9, 9) for at in range(0, 120, 5)]
    goes_on = [Sample(at, 110 * MEGABYTE, 9, 9) for at in range(120, 600, 5)]
    assert not has_grown(compared("p", begins + goes_on))


def test_streams_to_other_peers_are_no_leak_but_more_is() -> None:
    one = Grown("p", 500.0, 0, 48, 144)
    assert has_grown(one)
    assert not has_grown(one, 48)
    assert has_grown(one._replace(files=57), 48)
    assert has_grown(one._replace(tasks=153), 48)
