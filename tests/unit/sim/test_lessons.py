"""What is learned in a simulation: in one piece or in parts, it comes to the same."""

import random

import numpy as np
import pytest

from giaann_p2p.model.delta import total
from giaann_p2p.model.rows import DeltaRows, Question
from giaann_p2p.sim import lessons as lessons_module
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.layout import Layout

LAYOUT = Layout(shards=16)


@pytest.mark.parametrize("chunk", range(8))
def test_a_parcel_is_the_sum_of_its_shards_parts(chunk: int) -> None:
    lessons, rng = Lessons(LAYOUT), random.Random(chunk)
    assert encode(total([lessons.part(chunk, n) for n in range(16)])) == encode(
        lessons.delta(chunk)
    )
    for size in (0, 1, 2, 5, 16):
        some = sorted(rng.sample(range(16), size))
        plainly = encode(total([lessons.part(chunk, n) for n in some]))
        for _ in range(2):
            assert lessons.parcel(chunk, np.array(some, np.uint16)) == plainly


def test_rows_are_those_of_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lessons_module, "_MOST_ROWS", 3)
    lessons = Lessons(LAYOUT)
    for shard in (1, 10, 1, 10, 3, 4):
        for chunks in (frozenset({4, 5}), frozenset({4})):
            found, plainly = lessons.rows(shard, chunks), DeltaRows(lessons.content(shard, chunks))
            assert lessons.rows(shard, chunks) is found
            assert found.neurons == plainly.neurons
            question = Question(sorted(lessons.neurons(4)))
            assert repr(found.read(question)) == repr(plainly.read(question))
    assert len(lessons._rows) <= 3
