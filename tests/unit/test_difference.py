"""A sum less one of its terms is the sum of the others, byte for byte."""

import random

import numpy as np
import pytest

from giaann_p2p.model.delta import ARRAYS, EMPTY, Delta, total
from giaann_p2p.model.difference import less
from giaann_p2p.model.digest import digest
from tests.helpers_swarm import LESSONS

DELTAS = [LESSONS.delta(chunk) for chunk in range(8)]


def check_equal(one: Delta | None, other: Delta) -> None:
    assert one is not None
    for name in ARRAYS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert digest(one) == digest(other)
    assert one.names == other.names


@pytest.mark.parametrize("seed", range(30))
def test_taking_terms_back_leaves_the_sum_of_the_others(seed: int) -> None:
    rng = random.Random(seed)
    some = [rng.choice(DELTAS) for _ in range(rng.randrange(2, 7))]
    kept, back = some[:-1], some[-1]
    check_equal(less(total(some), back), total([*kept, EMPTY]))


def test_nothing_is_left_of_a_sum_whose_terms_are_all_taken_back() -> None:
    left = less(DELTAS[0], DELTAS[0])
    assert left is EMPTY
    assert less(DELTAS[0], EMPTY) is DELTAS[0]


def test_what_was_never_added_cannot_be_taken_back() -> None:
    one, other = DELTAS[:2]
    assert less(one, other) is None
    assert less(EMPTY, one) is None
    both = total([one, other])
    assert less(both, total([one, one])) is None
    assert less(one, both) is None
    for name, change in (("count", 1), ("strength", 1)):
        arrays = {of: getattr(one, of) for of in ARRAYS}
        arrays[name] = arrays[name] + change
        assert less(one, Delta(**arrays, names=one.names)) is None
    moved = {of: getattr(one, of) for of in ARRAYS}
    moved["branch"] = moved["branch"] ^ 1
    assert less(one, Delta(**moved, names=one.names)) is None
