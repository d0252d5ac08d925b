"""Rows that are the same, or grown into each other, against dictionaries."""

import random

import numpy as np
import pytest
from msgspec.structs import asdict, replace

from giaann_p2p.model.rows import Name, Row
from giaann_p2p.swarm.reading.row_match import alone, grown, same
from tests.unit.swarm.helpers_rows import BEE, Place, links, links_of, row

ONE: dict[Place, int] = {(1, 0, 0, 0): 5, (1, 1, 0, 2): 1, (2, 0, 1, 0): 3}


@pytest.mark.parametrize("seed", range(300))
def test_rows_are_compared_as_dictionaries_are(seed: int) -> None:
    rng = random.Random(seed)
    old = links(rng)
    new = links(rng) if seed % 3 else {place: old[place] + rng.randrange(2) for place in old}
    counts = rng.randrange(1, 3), rng.randrange(1, 3)
    one, other = row(counts[0], old, rng=rng), row(counts[1], new, rng=rng)
    assert links_of(one) == old
    contained = all(old[place] <= new.get(place, 0) for place in old)
    assert grown(one, other) == (contained and counts[0] <= counts[1])
    assert same(one, other) == ((counts[0], old) == (counts[1], new))


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_connections_tells_nothing(seed: int) -> None:
    rng = random.Random(seed)
    one, other = (row(7, ONE, rng=rng) for _ in range(2))
    assert same(one, other)
    assert grown(one, other)
    assert grown(other, one)


@pytest.mark.parametrize(
    ("changed", "has_grown", "has_shrunk"),
    [
        ({}, True, True),
        ({(1, 0, 0, 0): 6}, True, False),
        ({(1, 0, 0, 0): 4}, False, True),
        ({(3, 0, 0, 0): 1}, True, False),
        ({(1, 0, 0, 0): 6, (2, 0, 1, 0): 2}, False, False),  # they add up to the same
    ],
)
def test_what_is_more_has_grown(
    changed: dict[Place, int], has_grown: bool, has_shrunk: bool
) -> None:
    one, other = row(7, ONE), row(7, {**ONE, **changed})
    assert grown(one, other) == has_grown
    assert grown(other, one) == has_shrunk
    assert same(one, other) == (has_grown and has_shrunk)


@pytest.mark.parametrize("at", range(4))
def test_a_connection_elsewhere_is_another_one(at: int) -> None:
    place = [1, 1, 1, 1]
    place[at] = 2
    one, other = row(1, {(1, 1, 1, 1): 1}), row(1, {tuple(place): 1})  # type: ignore[dict-item]
    assert not grown(one, other)
    assert not same(one, other)


def test_a_row_that_never_occurred_grows_into_any() -> None:
    one = row(1, {})
    assert grown(None, None)
    assert grown(None, one)
    assert not grown(one, None)
    assert same(None, None)
    assert not same(one, None)
    assert not same(None, one)
    assert grown(one, row(1, ONE))
    assert not grown(row(1, ONE), one)


def test_another_neuron_or_name_is_another_row() -> None:
    one, other = row(1, ONE), row(1, ONE, Name("wasp", None))
    assert not grown(one, other)
    assert not same(one, other)
    assert not grown(one, replace(one, name=Name("Bee", None)))
    assert not grown(one, replace(one, neuron=other.neuron))


def test_a_row_alone_says_the_same_and_keeps_nothing_else() -> None:
    all_of_them = row(9, ONE)
    part = replace(
        all_of_them,
        target_concept=all_of_them.target_concept[:],
        strength=all_of_them.strength[:],
    )
    found = alone(part)
    assert found is not None
    assert same(found, part)
    arrays = [one for one in asdict(found).values() if isinstance(one, np.ndarray)]
    assert len(arrays) == 6
    assert all(array.base is None for array in arrays)
    assert alone(None) is None
    assert (found.name, found.count) == (BEE, 9)


def test_sums_beyond_what_a_float_tells_are_told_apart() -> None:
    large: dict[Place, int] = {(1, 0, 0, 0): 1 << 60, (2, 0, 0, 0): 1}
    one: Row = row(1, large)
    assert not same(one, row(1, {**large, (2, 0, 0, 0): 2}))
