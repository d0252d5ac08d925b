"""Rows of bits, against sets."""

import random
import tracemalloc

import numpy as np
import pytest

from giaann_p2p.swarm.members.claims import Claims


@pytest.mark.parametrize("times", [2, 8])
@pytest.mark.parametrize("shards", [1, 4, 8, 64])
def test_who_claims_a_shard_claims_all_parts_of_it(shards: int, times: int) -> None:
    rng, rows, none = random.Random(shards), Claims(3, shards), np.empty(0, np.uint16)
    held = np.array(sorted(rng.sample(range(shards), (shards + 1) // 2)), np.uint16)
    rows.claim(0, held, none, none)
    rows.claim(1, none, held, none)
    rows.claim(2, none, none, held)
    divided = rows.divided(shards * times)
    parts = {shard + shards * time for shard in held.tolist() for time in range(times)}
    for row, sets in enumerate((divided.ready, divided.syncing, divided.cold)):
        for shard in range(shards * times):
            assert sets.has(shard).tolist() == [n == row and shard in parts for n in range(3)]
    divided.grow(50)
    for row in range(3, 50):
        divided.claim(row, none, none, held)
    assert np.flatnonzero(divided.cold.has(int(held[0]))).tolist() == list(range(2, 50))


@pytest.mark.parametrize("shards", [1, 4, 8, 64, 256])
def test_rows_of_bits_are_sets_of_shards(shards: int) -> None:
    rng, rows, plain = random.Random(shards), Claims(2, shards), dict[int, set[int]]()
    for _ in range(150):
        if len(plain) == len(rows):
            rows.grow(len(rows) + rng.randint(1, 70))
        row = rows.free_row()
        assert row not in plain
        assert not any(rows.ready.has(shard)[row] for shard in range(shards))
        plain[row] = set(rng.sample(range(shards), rng.randint(0, shards)))
        rows.expires[row], rows.live[row], rows.holds[row] = 1.0, True, True
        ready = np.array(sorted(plain[row]), np.uint16)
        rest = np.setdiff1d(np.arange(shards, dtype=np.uint16), ready)
        rows.claim(row, ready, rest, np.empty(0, np.uint16))
        if rng.random() < 0.2:
            gone = rng.choice(list(plain))
            rows.clear(gone)
            del plain[gone]
    everybody = np.ones(len(rows), np.bool_)
    some = np.array([rng.random() < 0.5 for _ in everybody])
    for shard in range(shards):
        wanted = {row for row, held in plain.items() if shard in held}
        assert set(np.flatnonzero(rows.ready.has(shard))) == wanted
        assert set(np.flatnonzero(rows.syncing.has(shard))) == set(plain) - wanted
        assert rows.ready_counts(everybody)[shard] == len(wanted)
        assert rows.ready_counts(some)[shard] == len(wanted & set(np.flatnonzero(some)))
    asked = rng.sample(range(shards), min(shards, 5))
    held = rows.held_of(np.array(sorted(asked), np.uint16))
    assert held == {row: sorted(asked) for row in plain}  # each names all, as ready or syncing
    row, shard_of = np.divmod(np.arange(len(rows) * shards), shards)
    expected = [s in plain.get(r, ()) for r, s in zip(row.tolist(), shard_of.tolist(), strict=True)]
    assert rows.ready.have(row, shard_of).tolist() == expected
    assert rows.ready.have(row, shard_of).dtype == np.bool_


def test_only_sets_that_are_not_empty_take_memory() -> None:
    """Nearly all peers fetch nothing, and a set of 65,536 shards has 8 KiB."""
    none, size = np.empty(0, np.uint16), 8192
    tracemalloc.start()
    try:
        rows = Claims(1000, 1 << 16)
        for time in range(5):  # rows that come and go leave their place to others
            for row in range(1000):
                rows.claim(row, np.array([row + time], np.uint16), none, none)
            for row in range(0, 1000, 2):
                rows.clear(row)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 1.6 * 1000 * size
    assert np.flatnonzero(rows.ready.has(5)).tolist() == [1]
