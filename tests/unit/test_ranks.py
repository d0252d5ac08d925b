"""The ranks of numbers."""

import numpy as np
import pytest

from giaann_p2p.model.ranks import ranked


@pytest.mark.parametrize("end", [20, 1 << 20])  # by an array over all, by sorting
def test_numbers_are_ranked(end: int) -> None:
    used, rank = ranked(np.array([7, 3, 7, 19], np.uint32), end)
    assert used.tolist() == [3, 7, 19]
    assert rank.tolist() == [1, 0, 1, 2]
