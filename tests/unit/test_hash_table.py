"""A hash table of numbers, whatever their hashes are."""

import numpy as np
import pytest

from giaann_p2p.model import hash_table as module
from giaann_p2p.model.hash_table import FREE, HashTable, Numbers


def hashes(number: Numbers) -> np.ndarray:
    return number * np.uint64(0x9E3779B97F4A7C15)


def found(table: HashTable, wanted: Numbers) -> list[int]:
    return table.look_up(hashes(wanted), lambda number, at: number == wanted[at]).tolist()


@pytest.mark.parametrize("full", [0.5, 0.75])
def test_numbers_are_found_while_the_table_grows(full: float) -> None:
    table = HashTable(full)
    for first in range(0, 90_000, 9_000):
        table.add(first, first + 9_000, hashes)
        wanted = np.arange(0, first + 10_000, 7, dtype=np.uint32)
        assert found(table, wanted) == [n if n < first + 9_000 else FREE for n in wanted.tolist()]
        used = np.count_nonzero(table.slots != FREE)
        assert used == first + 9_000 <= full * len(table.slots)
        if len(table.slots) > 1 << 16:
            assert used > full * len(table.slots) / 1.5


def test_every_slot_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """All hashes are the same, and in the end no slot is free."""
    monkeypatch.setattr(module, "_LEAST", 1000)
    table = HashTable(full=1)
    table.add(0, 600, np.zeros_like)
    table.add(600, 1000, np.zeros_like)
    assert sorted(table.slots.tolist()) == list(range(1000))
