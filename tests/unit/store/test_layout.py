"""Where rows live: the same on every peer, forever."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p import SpecError
from giaann_p2p.store.layout import Layout

RANDOM = np.random.default_rng(1)
CONCEPT = RANDOM.integers(0, 1 << 64, 5000, np.uint64)
FEATURE = RANDOM.integers(0, 1 << 64, 5000, np.uint64)


@pytest.mark.parametrize("layout", [Layout(), Layout(shards=16, blocks=4), Layout(shards=1)])
def test_one_neuron_or_many_the_shard_is_the_same(layout: Layout) -> None:
    shards = layout.shards_of(CONCEPT, FEATURE)
    pairs = zip(CONCEPT.tolist(), FEATURE.tolist(), strict=True)
    assert [layout.shard_of(*pair) for pair in pairs] == shards.tolist()


def test_what_peers_agreed_on_stays() -> None:
    concept, feature = np.array([0, 1, 2**64 - 1], np.uint64), np.array([0, 7, 7], np.uint64)
    assert Layout().shards_of(concept, feature).tolist() == [0, 229, 123]
    assert Layout(blocks=8).shards_of(concept, feature).tolist() == [0, 11, 210]


def test_a_column_is_in_one_shard_or_in_as_many_as_it_has_blocks() -> None:
    one = np.full_like(CONCEPT, 12345)
    assert len(np.unique(Layout().shards_of(one, FEATURE))) == 1
    assert len(np.unique(Layout(blocks=8).shards_of(one, FEATURE))) == 8


def test_columns_spread_evenly() -> None:
    concept = np.arange(256 * 400, dtype=np.uint64)  # ids in a row are no excuse
    held = np.bincount(Layout().shards_of(concept, concept), minlength=256)
    assert held.min() > 300
    assert held.max() < 500


@pytest.mark.parametrize(
    "wrong", [{"shards": 0}, {"shards": 100}, {"shards": 1 << 17}, {"blocks": 3}]
)
def test_only_powers_of_two(wrong: dict[str, int]) -> None:
    with pytest.raises(SpecError, match=f"{next(iter(wrong))} must be a power of two"):
        Layout(**wrong)


def test_a_chunk_has_the_usual_number_of_sentences_unless_a_layout_says_otherwise() -> None:
    assert Layout().chunk == 64
    assert Layout(sentences=512).chunk == 512
    assert Layout(sentences=64) == Layout()
    assert msgspec.json.encode(Layout(sentences=64)) == b'{"shards":256,"blocks":1}'
    assert msgspec.json.decode(msgspec.json.encode(Layout(sentences=512)), type=Layout).chunk == 512


@pytest.mark.parametrize("sentences", [0, 63, (1 << 14) + 1])
def test_a_chunk_has_neither_too_few_sentences_nor_too_many(sentences: int) -> None:
    with pytest.raises(SpecError, match=f"sentences must be 64 to 16384; it is {sentences}"):
        Layout(sentences=sentences)


def test_a_manifest_names_no_number_that_was_doubled() -> None:
    assert msgspec.json.encode(Layout().with_shards(256)) == b'{"shards":256,"blocks":1}'
    assert Layout().with_shards(512).with_shards(256) == Layout()
    assert Layout().with_shards(512) != Layout(shards=512)


@pytest.mark.parametrize("wrong", [128, 300, 1 << 17])
def test_the_number_of_shards_only_doubles(wrong: int) -> None:
    with pytest.raises(SpecError, match="shards must be"):
        Layout().with_shards(wrong)


def test_a_layout_knows_how_often_it_was_doubled() -> None:
    layout = Layout(shards=4, blocks=8, sentences=128)
    assert (layout.founding, layout.doublings) == (4, 0)
    doubled = layout.with_shards(8).with_shards(32)
    assert (doubled.founding, doubled.doublings, doubled.shards) == (4, 3, 32)
    assert (doubled.blocks, doubled.chunk) == (8, 128)


powers = st.integers(0, 16).map(lambda bits: 1 << bits)


@given(
    numbers=st.lists(powers, min_size=3, max_size=3).map(sorted),
    blocks=st.sampled_from([1, 8]),
    drawn=st.sets(st.integers(0, (1 << 16) - 1), max_size=40),
)
def test_layouts_are_nested(numbers: list[int], blocks: int, drawn: set[int]) -> None:
    founding, *doubled = numbers
    few, many = (Layout(shards=founding, blocks=blocks).with_shards(n) for n in doubled)
    coarse, fine = (layout.shards_of(CONCEPT, FEATURE) for layout in (few, many))
    assert np.array_equal(fine.astype(int) % few.shards, coarse)
    assert np.array_equal(
        fine, Layout(shards=many.shards, blocks=blocks).shards_of(CONCEPT, FEATURE)
    )
    for layout, other, mine, theirs in ((few, many, coarse, fine), (many, few, fine, coarse)):
        shards = np.array(sorted({number % layout.shards for number in drawn}), np.uint16)
        cover = layout.cover(shards, other)
        assert cover.dtype == np.uint16
        assert (np.diff(cover.astype(int)) > 0).all()
        assert {*theirs[np.isin(mine, shards)].tolist()} <= {*cover.tolist()}
        assert {n % few.shards for n in cover.tolist()} == {n % few.shards for n in shards.tolist()}
        if other is many:
            assert len(cover) == len(shards) * (many.shards // few.shards)
