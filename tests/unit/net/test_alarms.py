"""Alarms against a dictionary of times."""

import random

import pytest

from giaann_p2p.net.alarms import NEVER, Alarms


@pytest.mark.parametrize("seed", range(30))
def test_alarms_are_a_dictionary_of_times(seed: int) -> None:
    rng = random.Random(seed)
    alarms, plain = Alarms(), dict[int, float]()
    now = 0.0
    for _ in range(500):
        request, deed = rng.randrange(12), rng.random()
        if deed < 0.6:
            when = now + rng.choice([0, 1, 2, 5])
            alarms.set(request, when)
            plain[request] = when
        elif deed < 0.8:
            alarms.drop(request)
            plain.pop(request, None)
        else:
            now += rng.random() * 2
            due = sorted((when, number) for number, when in plain.items() if when <= now)
            found = alarms.pop(now)
            assert sorted(found) == sorted(number for _, number in due)
            assert [plain.pop(number) for number in found] == [when for when, _ in due]
        assert alarms.next() == min(plain.values(), default=NEVER)


def test_what_is_done_long_before_it_is_due_takes_no_room() -> None:
    alarms = Alarms()
    for request in range(10_000):
        alarms.set(request, 30.0 + request)
        alarms.drop(request - 5)
        assert len(alarms) <= 2 * 6 + 65
    assert alarms.next() == 30.0 + 9_995
