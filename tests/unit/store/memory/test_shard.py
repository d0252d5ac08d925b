"""A shard's arrays: merging, and numbers in few bytes."""

import random
from collections import Counter

import numpy as np
import pytest

from giaann_p2p.store.memory.shard import Piece, Shard, empty_shard


def piece(*connections: tuple[int, int, int, int]) -> Piece:
    row, target, place, units = (np.array(column) for column in zip(*connections, strict=True))
    return Piece(row, target.astype(np.uint32), place.astype(np.uint8), units)


def listed(shard: Shard) -> list[tuple[int, int, int, int]]:
    units = shard.strengths.units(0, shard.connections)
    columns = (shard.row_numbers(), shard.target, shard.place, units)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def merged(shard: Shard, *pieces: Piece, rows: int = 3) -> Shard:
    return shard.merged(
        np.arange(rows, dtype=np.uint32), np.ones(rows, np.int64), pieces, shard.floor + 1
    )


def test_merging_adds_what_is_there_and_weaves_in_what_is_new() -> None:
    shard = merged(empty_shard(np.uint8), piece((0, 5, 1, 10), (2, 1, 0, 20), (0, 5, 0, 1)))
    assert listed(shard) == [(0, 5, 0, 1), (0, 5, 1, 10), (2, 1, 0, 20)]
    more = merged(
        shard,
        piece((1, 9, 9, 3), (0, 5, 1, 5), (3, 0, 0, 8)),
        piece((0, 5, 1, 2**40), (0, 4, 255, 1), (3, 0, 0, 1)),
        rows=4,
    )
    assert listed(more) == [
        (0, 4, 255, 1),
        (0, 5, 0, 1),
        (0, 5, 1, 15 + 2**40),
        (1, 9, 9, 3),
        (2, 1, 0, 20),
        (3, 0, 0, 9),
    ]
    assert more.starts.tolist() == [0, 3, 4, 5, 6]
    assert more.part(0).target.tolist() == [4, 5, 5]
    assert (more.target.dtype, more.place.dtype, more.floor) == (np.uint32, np.uint8, 2)


def test_what_was_merged_before_stays_as_it_was() -> None:
    shard = merged(empty_shard(np.uint8), piece((0, 5, 1, 10)))
    before = listed(shard)
    merged(shard, piece((0, 5, 1, 10), (0, 6, 1, 10)))
    assert listed(shard) == before


def test_more_rows_than_a_key_can_number_are_refused() -> None:
    with pytest.raises(OverflowError, match="too many for one shard"):
        merged(empty_shard(np.uint16), piece((0, 2**32 - 1, 0, 1)), rows=1 << 16)


def test_a_row_may_occur_more_often_than_four_bytes_can_say() -> None:
    for count in (2**32 - 1, 2**32):
        counts = np.array([1, count, 3])
        neuron = np.arange(3, dtype=np.uint32)
        shard = empty_shard(np.uint8).merged(neuron, counts, [piece((1, 5, 1, 10))], 1)
        assert shard.count.tolist() == list(shard.plain.counts) == counts.tolist()
        assert shard.count.itemsize == (4 if count < 2**32 else 8)


def test_a_usual_connection_takes_six_bytes_and_a_row_twelve() -> None:
    shard = merged(empty_shard(np.uint8), *[piece((0, target, 0, 327680)) for target in range(900)])
    assert shard.nbytes == 900 * 6 + 3 * 12 + 4 + shard.strengths.before.nbytes


@pytest.mark.parametrize("most", [30, 2**32 - 1])  # with the larger, a key leaves no bits unused
def test_merging_again_and_again_is_adding_up(most: int) -> None:
    rng, rows = random.Random(most), 4000
    shard, known = empty_shard(np.uint16), Counter[tuple[int, int, int]]()
    for step in range(40):
        connections = [
            (
                rng.choice([0, 1, rows - 1]),
                rng.choice([0, 1, most]),
                rng.randrange(4),
                rng.choice([327680, 163840, 3, 2**31]) if step < 30 else 2**40,
            )
            for _ in range(40)
        ]
        for *connection, units in connections:
            known[tuple(connection)] += units
        shard = merged(shard, piece(*connections), rows=rows)
        assert listed(shard) == [(*connection, known[connection]) for connection in sorted(known)]
    assert shard.strengths.rest.dtype == np.int64
