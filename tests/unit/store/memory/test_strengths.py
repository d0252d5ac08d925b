"""Strengths in few bytes: usual ones in one byte each, and any others beside them."""

import numpy as np
import pytest

from giaann_p2p.model.spec import increment
from giaann_p2p.store.memory.strengths import Strengths, narrowed

USUAL = [increment(1), increment(5), 2 * increment(2), 5 * increment(5), increment(80)]
ANY = [1, increment(1) + 1, 2**32 - 1]
WIDE = [2**32, 2**62 + 3]


@pytest.mark.parametrize("values", [USUAL, ANY, [*USUAL, *ANY], [*USUAL, *ANY, *WIDE]])
@pytest.mark.parametrize("size", [0, 1, 7, 255, 256, 257, 512, 1500])
def test_strengths_of_any_size_come_back(values: list[int], size: int) -> None:
    random = np.random.default_rng(size)
    units = random.choice(np.array(values), size)
    strengths = Strengths.of(units)
    ends = [*random.integers(0, size + 1, 200).tolist(), 0, size, min(size, 256)]
    for start in ends:
        for end in (start, size, start + (size - start) // 2):
            assert strengths.units(start, end).tolist() == units[start:end].tolist()


def test_a_usual_strength_takes_one_byte() -> None:
    """The same for each of the multiples of an increment that the table has."""
    usual = {n * increment(d) for d in range(1, 61) for n in range(1, 60 // d + 1)}
    strengths = Strengths.of(np.array(sorted(usual)))
    assert (len(strengths.codes), len(strengths.rest)) == (len(usual), 0)
    assert strengths.nbytes == len(usual) + strengths.before.nbytes
    assert Strengths.of(np.full(100_000, increment(3))).nbytes < 101_600


def test_an_unusual_strength_takes_four_more_and_eight_if_any_needs_them() -> None:
    def beside_the_codes(*units: int) -> int:
        strengths = Strengths.of(np.array(units))
        return strengths.nbytes - strengths.codes.nbytes - strengths.before.nbytes

    assert beside_the_codes(increment(1), 1, 2**32 - 1) == 2 * 4
    assert beside_the_codes(increment(1), 1, 2**32) == 2 * 8


def test_a_sum_beyond_63_bits_is_refused() -> None:
    with pytest.raises(OverflowError, match="63 bits"):
        Strengths.of(np.array([5, -(2**63)]))


def test_numbers_are_narrowed_only_if_all_of_them_fit() -> None:
    for values in ([], [0], [2**32 - 1, 0], [2**32, 1], [-1, 5]):
        found = narrowed(np.array(values, np.int64))
        assert found.tolist() == values
        fits = all(0 <= value < 2**32 for value in values)
        assert found.dtype == (np.uint32 if fits else np.int64)
