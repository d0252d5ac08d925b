"""Seals: the same root from any part of a delta, and from nothing else."""

import dataclasses
import gc
import random

import numpy as np
import pytest

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import ARRAYS, EMPTY, Delta
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.store.codec.arrays import pack
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import (
    _LEAVES,
    DIGEST,
    UNSEALED,
    Seal,
    Tree,
    from_bytes,
    leaves_of,
    made,
    narrowed,
    to_bytes,
    told,
)

COUNT = 64
LAYOUT = Layout(shards=COUNT, blocks=8)
LESSONS = Lessons(LAYOUT)
ALL = np.arange(COUNT, dtype=np.uint16)
WHOLE = made(LESSONS.delta(1), LAYOUT)
WITH_ROWS = sorted(leaves_of(LESSONS.delta(1), ALL, LAYOUT))
WITHOUT = sorted({*range(COUNT)} - {*WITH_ROWS})


def some(*numbers: int) -> Shards:
    return np.array(sorted(numbers), np.uint16)


def part(chunk: int, shards: Shards) -> Delta:
    delta = LESSONS.delta(chunk)
    chosen = np.isin(LAYOUT.shards_of(delta.concept, delta.feature), shards)
    return delta.only(chosen) if chosen.any() else EMPTY


def drawn(rng: random.Random) -> Shards:
    return some(*rng.sample(range(COUNT), rng.choice((1, 2, 3, 10, 40, COUNT))))


def test_these_lessons_have_rows_for_some_shards_and_not_for_others() -> None:
    assert len(WITH_ROWS) > 8
    assert len(WITHOUT) > 8


@pytest.mark.parametrize("seed", range(80))
def test_any_part_comes_to_the_same_root_with_what_is_beside_it(seed: int) -> None:
    shards = drawn(random.Random(seed))
    seal = WHOLE.seal(b"words", shards.tolist())
    assert told(part(1, shards), shards, LAYOUT, seal).root == WHOLE.root
    assert told(LESSONS.delta(1), shards, LAYOUT, seal).root == WHOLE.root  # others do not count


@pytest.mark.parametrize("chunks", range(7))
@pytest.mark.parametrize("seed", range(8))
def test_trees_of_any_size(chunks: int, seed: int) -> None:
    rng = random.Random(seed)
    leaves = {shard: rng.randbytes(DIGEST) for shard in sorted(rng.sample(range(COUNT), chunks))}
    shape = some(*leaves)
    whole = Tree(leaves, shape)
    for _ in range(10):
        mine = {shard for shard in leaves if rng.random() < 0.5}
        beside = whole.beside(mine)
        again = Tree({shard: leaves[shard] for shard in mine}, shape, beside)
        assert again.root == whole.root
        fewer = {shard for shard in mine if rng.random() < 0.5}
        assert again.beside(fewer) == whole.beside(fewer)


@pytest.mark.parametrize("seed", range(80))
def test_a_part_is_made_smaller_by_whoever_has_it(seed: int) -> None:
    rng = random.Random(seed)
    more = drawn(rng)
    fewer = some(*rng.sample(more.tolist(), rng.randrange(1, len(more) + 1)))
    found = narrowed(WHOLE.seal(b"words", more.tolist()), part(1, more), more, fewer, LAYOUT)
    assert found == WHOLE.seal(b"words", fewer.tolist())


def test_who_has_all_rows_needs_nothing_beside_and_who_has_none_the_top_alone() -> None:
    assert WHOLE.beside(range(COUNT)) == WHOLE.beside(WITH_ROWS) == b""
    assert len(WHOLE.beside(WITHOUT)) == DIGEST
    assert WHOLE.seal(b"", ALL.tolist()).size == len(WHOLE.shape)


def test_what_nobody_stands_for_is_not_worked_out() -> None:
    assert narrowed(UNSEALED, EMPTY, ALL, some(1), LAYOUT) is UNSEALED


def test_leaves_are_digested_once_for_a_layout_as_long_as_their_delta_is_there() -> None:
    delta = dataclasses.replace(LESSONS.delta(1))
    for layout in (LAYOUT, Layout(shards=COUNT), LAYOUT):
        shards = np.arange(layout.shards, dtype=np.uint16)
        homes = layout.shards_of(delta.concept, delta.feature)
        with_rows = {*homes[(delta.count > 0) | (delta.lengths > 0)].tolist()}
        leaves = leaves_of(delta, shards, layout)
        assert list(leaves) == sorted(with_rows)
        for number, leaf in leaves.items():
            alone = delta.only(homes == number)
            assert leaves_of(alone, some(number), layout) == {number: leaf}
    assert delta in _LEAVES
    before = len(_LEAVES)
    del delta
    gc.collect()
    assert len(_LEAVES) < before


def test_another_delta_is_another_root() -> None:
    roots = {made(LESSONS.delta(chunk), LAYOUT).root for chunk in range(40)}
    roots.add(made(EMPTY, LAYOUT).root)
    assert len(roots) == 41


@pytest.mark.parametrize("what", ["strength", "count", "branch", "target", "feature"])
def test_whatever_is_changed_in_a_delta_changes_its_root(what: str) -> None:
    delta = LESSONS.delta(1)
    arrays = {name: getattr(delta, name).copy() for name in ARRAYS}
    if what == "target":
        arrays["target"][0] = (arrays["target"][0] + 1) % delta.neurons
    else:
        arrays[what][-1] += 1
    assert made(Delta(**arrays, names=delta.names), LAYOUT).root != WHOLE.root


def test_rows_that_change_their_shard_change_the_root() -> None:
    leaves = leaves_of(LESSONS.delta(1), ALL, LAYOUT)
    first, second, *_ = WITH_ROWS
    swapped = leaves | {first: leaves[second], second: leaves[first]}
    assert Tree(swapped, some(*WITH_ROWS)).root != WHOLE.root
    moved = {(shard + 1) % COUNT: leaf for shard, leaf in leaves.items()}
    assert Tree(moved, some(*moved)).root != WHOLE.root


def test_a_branch_is_no_leaf() -> None:
    pair = {0: b"a" * DIGEST, 1: b"b" * DIGEST}
    whole = Tree(pair, some(0, 1))
    top = whole.beside([])
    assert Tree({0: top}, some(0)).root != whole.root


def test_rows_are_neither_left_out_nor_added() -> None:
    """Who says that there is nothing for a shard, or something, says so of all that was signed."""
    mine = some(WITH_ROWS[0], WITHOUT[0])
    seal = WHOLE.seal(b"", mine.tolist())
    with pytest.raises(DamagedError, match="other shards than the delta has rows for"):
        told(EMPTY, mine, LAYOUT, seal)
    shape = some(*{*WITH_ROWS} - {WITH_ROWS[0]})
    without = Seal(b"", Tree({}, shape, bytes(DIGEST)).shape, seal.beside)
    with pytest.raises(DamagedError, match="other shards than the delta has rows for"):
        told(part(1, mine), mine, LAYOUT, without)
    with pytest.raises(DamagedError, match="a seal has too many branches"):
        told(EMPTY, mine, LAYOUT, without)
    assert told(EMPTY, mine, LAYOUT, without._replace(beside=bytes(DIGEST))).root != WHOLE.root


@pytest.mark.parametrize("wrong", ["none", "short", "half a digest", "long"])
@pytest.mark.parametrize("shards", [WITH_ROWS[:1], WITH_ROWS[3:5], WITH_ROWS[:7:2], WITHOUT[:3]])
def test_a_seal_has_just_what_is_lacking(shards: list[int], wrong: str) -> None:
    beside = WHOLE.beside(shards)
    beside = {
        "none": b"",
        "short": beside[:-DIGEST],
        "half a digest": beside + b"x",
        "long": beside + bytes(DIGEST),
    }[wrong]
    with pytest.raises(DamagedError, match="a seal"):
        told(part(1, some(*shards)), some(*shards), LAYOUT, Seal(b"", WHOLE.shape, beside))


@pytest.mark.parametrize(
    "steps",
    [
        np.array([3, 0], np.uint32),
        np.array([1 << 16], np.uint32),
        np.array([1, (1 << 32) - 1], np.uint32),
        np.array([3], np.uint16),
        np.array([-3], np.int64),
    ],
)
def test_a_shape_that_is_none(steps: np.ndarray) -> None:
    with pytest.raises(DamagedError, match="a seal"):
        told(EMPTY, ALL, LAYOUT, Seal(b"", pack([steps])))


@pytest.mark.parametrize("chunk", [None, 1, 2])
def test_leaves_as_bytes(chunk: int | None) -> None:
    delta = EMPTY if chunk is None else LESSONS.delta(chunk)
    found = from_bytes(to_bytes(leaves_of(delta, ALL, LAYOUT)))
    assert found.root == made(delta, LAYOUT).root
    assert found.shape == made(delta, LAYOUT).shape


def test_a_tree_says_what_it_stands_for() -> None:
    assert repr(WHOLE) == f"<Tree of {len(WITH_ROWS)} leaves: {WHOLE.root.hex()}>"
