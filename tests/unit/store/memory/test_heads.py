"""The last pieces of neurons, counted from a base that moves on."""

import numpy as np
import pytest

from giaann_p2p.store.memory import heads as module
from giaann_p2p.store.memory.heads import Heads

ALL = np.arange(4)


def test_a_neuron_has_its_last_piece_or_one_below_the_base() -> None:
    heads = Heads().longer(3).longer(1)
    assert len(heads) == 4
    assert heads.of(ALL).tolist() == [-1] * 4
    heads.put(np.array([2, 0]), 10)
    heads.put(np.array([3, 0]), 12)
    assert heads.of(ALL).tolist() == [13, -1, 10, 12]
    assert [heads.one(neuron) for neuron in range(4)] == [13, -1, 10, 12]


def test_pieces_before_the_base_are_forgotten_when_it_moves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST", 15)
    heads = Heads().longer(4)
    heads.put(np.array([2, 0, 3]), 10)
    assert heads.up_to(15, 11) is heads
    moved = heads.up_to(16, 11)
    assert heads.of(ALL).tolist() == [11, -1, 10, 12]  # a reader may have it still
    assert moved.of(ALL).tolist() == [11, 10, 10, 12]
    assert moved.longer(1).one(4) == 10


def test_pieces_far_beyond_four_bytes_are_numbered() -> None:
    heads, end = Heads().longer(4), 0
    for pending in range(1 << 30, 1 << 36, 1 << 30):
        end = pending + 5
        heads = heads.up_to(end, pending)
        heads.put(np.array([1, 3]), end - 2)
        assert heads.of(ALL[1::2]).tolist() == [end - 2, end - 1]
    assert max(heads.of(ALL[::2])) < end - 5
    assert heads.last.itemsize == 4
