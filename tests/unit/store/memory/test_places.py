"""Branch and segment as one number."""

import numpy as np
import pytest

from giaann_p2p.store.memory.places import Places


@pytest.mark.parametrize(
    ("branches", "segments", "dtype"),
    [(1, 2, np.uint8), (2, 128, np.uint8), (2, 129, np.uint16), (100, 200, np.uint16)],
)
def test_every_place_comes_back(branches: int, segments: int, dtype: type) -> None:
    places = Places(branches, segments)
    assert places.dtype is dtype
    branch = np.repeat(np.arange(branches), segments).astype(np.uint8)
    segment = np.tile(np.arange(segments), branches).astype(np.uint8)
    place = places.of(branch, segment)
    assert place.dtype == dtype
    assert place.tolist() == list(range(branches * segments))
    assert places.branch(place).tolist() == branch.tolist()
    assert places.segment(place).tolist() == segment.tolist()
    assert places.branch(place).dtype == places.segment(place).dtype == np.uint8
