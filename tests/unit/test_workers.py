"""Work in other processes: in order, whatever each takes."""

import time
from collections.abc import Generator, Iterator
from typing import cast

import pytest

from giaann_p2p.model.workers import in_processes


def _slow_at_first(number: int) -> int:
    time.sleep(0.2 if number == 0 else 0)
    return number * number


@pytest.mark.parametrize(("items", "ahead"), [(9, 1), (9, 3), (3, 3), (1, 3), (0, 3)])
def test_what_comes_out_is_in_order_however_far_ahead_some_are(items: int, ahead: int) -> None:
    found = list(in_processes(_slow_at_first, iter(range(items)), 2, ahead))
    assert found == [number * number for number in range(items)]


def test_no_more_is_taken_than_all_may_have_before_them() -> None:
    taken = list[int]()

    def items() -> Iterator[int]:
        for number in range(20):
            taken.append(number)
            yield number

    made = cast(Generator[int], in_processes(_slow_at_first, items(), 2, 3))
    assert next(made) == 0
    assert len(taken) == 7  # six at once, and one more when the first was taken
    made.close()
