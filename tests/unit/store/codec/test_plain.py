"""A few rows as plain bytes: there and back, and whatever a stranger makes of them."""

import random
import struct

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.rows import Name, Neuron, Question, Row, empty_row
from giaann_p2p.store.codec.parcel import Limits
from giaann_p2p.store.codec.plain import MAGIC, decode, encode, sizes_of
from giaann_p2p.store.cuts import MARK
from tests.unit.store.memory.test_columns import assert_row

LIMITS = Limits(branches=3, segments=4, neurons=3, connections=1000)
BEE = Name("bee", "red")


def row_of(seed: int, name: Name = BEE) -> Row:
    rng = random.Random(seed)
    links = [sorted(rng.sample(range(12), rng.randint(1, 5))) for _ in range(rng.randint(0, 9))]
    places = [place for link in links for place in link]
    return Row(
        name.neuron,
        name,
        rng.randint(1, 1 << 40),
        np.array([rng.getrandbits(64) | 1 for _ in links], np.uint64),
        np.array([rng.choice([PRIME, rng.getrandbits(64)]) for _ in links], np.uint64),
        np.repeat(np.arange(len(links)), [len(link) for link in links]),
        np.array([place // 4 for place in places], np.uint8),
        np.array([place % 4 for place in places], np.uint8),
        np.array([rng.randint(1, 1 << rng.randint(1, 50)) for _ in places], np.int64),
    )


ROW = Row(
    BEE.neuron,
    BEE,
    7,
    np.array([5, 5], np.uint64),
    np.array([0, 6], np.uint64),
    np.array([0, 0, 1]),
    np.array([0, 1, 2], np.uint8),
    np.array([3, 0, 3], np.uint8),
    np.array([1, 1 << 40, 3]),
)


@pytest.mark.parametrize("seed", range(50))
def test_rows_come_back(seed: int) -> None:
    rows = [row_of(seed), row_of(seed + 1000, Name("wasp", None)), row_of(seed, Name("é", "ü"))]
    found = decode(encode(rows), LIMITS)
    assert found.neurons == {row.neuron for row in rows}
    for row, told in zip(rows, found.read(Question([row.neuron for row in rows])), strict=True):
        assert_row(told, row)


def test_sizes_are_those_of_the_rows() -> None:
    for rows in ([], [ROW], [row_of(1), ROW, row_of(2, Name("é", None))]):
        assert sizes_of(encode(rows)) == (len(rows), sum(len(row.target) for row in rows))


def test_no_rows_are_rows_too_and_what_is_not_there_is_none() -> None:
    assert encode([]) == MAGIC
    assert decode(MAGIC, LIMITS).read(Question([ROW.neuron])) == [None]


def test_a_row_without_connections() -> None:
    row = replace(empty_row(BEE.neuron, BEE), count=2)
    (told,) = decode(encode([row]), LIMITS).read(Question([BEE.neuron]))
    assert_row(told, row)


BEYOND = 1 << 63
LIES = {
    f"count is out of range: {BEYOND}": {"count": BEYOND},
    "a branch is not in the model": {"branch": np.array([0, 1, 3], np.uint8)},
    "a segment is not in the model": {"segment": np.array([3, 0, 4], np.uint8)},
    "a strength is below 1": {"strength": np.array([1, 0, 3])},
    "strengths add up to more than 63 bits": {"strength": np.array([1, BEYOND - 2, 3])},
    "places of a target do not ascend": {"branch": np.array([0, 0, 2], np.uint8)},
    "a target is listed twice": {"target_feature": np.array([6, 6], np.uint64)},
    "a neuron has no concept": {"target_concept": np.array([0, 5], np.uint64)},
    "marks do not match": {"target": np.array([0, 0, 0])},
    "is not that of 'wasp'": {"name": Name("wasp", "red")},
    "is not that of 'blue'": {"name": Name("bee", "blue")},
}


@pytest.mark.parametrize("why", LIES)
def test_what_no_row_is_does_not_pass(why: str) -> None:
    decode(encode([ROW]), LIMITS)
    with pytest.raises(DamagedError, match=why):
        decode(encode([replace(ROW, **LIES[why])]), LIMITS)


def test_a_part_of_a_cut_column_counts_nothing_but_leads_somewhere() -> None:
    name = Name(f"bee{MARK}3", BEE.feature)
    part = replace(ROW, neuron=name.neuron, name=name, count=0)
    (told,) = decode(encode([part]), LIMITS).read(Question([part.neuron]))
    assert_row(told, part)
    for row in (replace(ROW, count=0), empty_row(BEE.neuron, BEE), empty_row(name.neuron, name)):
        with pytest.raises(DamagedError, match="a row never occurred"):
            decode(encode([row]), LIMITS)


def test_no_more_rows_than_may_be() -> None:
    rows = [row_of(seed, Name(f"n{seed}", None)) for seed in range(4)]
    decode(encode(rows[:3]), LIMITS)
    with pytest.raises(DamagedError, match="more rows"):
        decode(encode(rows), LIMITS)


def test_a_length_that_is_not_there_asks_for_no_memory() -> None:
    head = struct.pack("<QQQIIII", word_id("bee"), 0, 1, (1 << 32) - 1, (1 << 32) - 1, 3, 0)
    with pytest.raises(DamagedError, match="data too short"):
        decode(MAGIC + head + b"bee", LIMITS)


def test_any_bytes_are_rows_or_damage() -> None:
    rng, whole = random.Random(1), encode([row_of(3), ROW])
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        cut = bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        try:
            found = decode(cut, LIMITS)
        except DamagedError:
            continue
        for row in found.read(Question([Neuron(*one) for one in found.neurons])):
            assert row is not None
            assert (np.diff(row.target) >= 0).all()
            assert row.strength.min(initial=1) > 0
            assert len(row.target) == len(row.branch) == len(row.segment) == len(row.strength)
