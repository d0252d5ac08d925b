"""Seals: the same root from any part of a delta, and from nothing else."""

import random

import numpy as np
import pytest

from giaann_p2p.errors import DamagedError
from giaann_p2p.model.delta import ARRAYS, EMPTY, Delta
from giaann_p2p.sim.lessons import Lessons
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.seal import (
    LEAF_BYTES,
    UNSEALED,
    Seal,
    Tree,
    from_bytes,
    leaves_of,
    narrowed,
    to_bytes,
    tree_of,
)

LAYOUT = Layout(shards=16)
LESSONS = Lessons(LAYOUT)
ALL = np.arange(16, dtype=np.uint16)
WHOLE = tree_of(LESSONS.delta(1), ALL, LAYOUT)


def some(*numbers: int) -> Shards:
    return np.array(sorted(numbers), np.uint16)


def part(chunk: int, shards: Shards) -> Delta:
    delta = LESSONS.delta(chunk)
    chosen = np.isin(LAYOUT.shards_of(delta.concept, delta.feature), shards)
    return delta.only(chosen) if chosen.any() else EMPTY


def drawn(rng: random.Random) -> Shards:
    return some(*rng.sample(range(16), rng.randrange(1, 17)))


@pytest.mark.parametrize("seed", range(60))
def test_any_part_comes_to_the_same_root_with_what_is_beside_it(seed: int) -> None:
    shards = drawn(random.Random(seed))
    seal = Seal(b"words", WHOLE.beside(shards.tolist()))
    assert tree_of(part(1, shards), shards, LAYOUT, seal).root == WHOLE.root
    assert tree_of(LESSONS.delta(1), shards, LAYOUT, seal).root == WHOLE.root  # others do not count


@pytest.mark.parametrize("seed", range(60))
def test_a_part_is_made_smaller_by_whoever_has_it(seed: int) -> None:
    rng = random.Random(seed)
    more = drawn(rng)
    fewer = some(*rng.sample(more.tolist(), rng.randrange(1, len(more) + 1)))
    seal = Seal(b"words", WHOLE.beside(more.tolist()))
    found = narrowed(seal, part(1, more), more, fewer, LAYOUT)
    assert found == Seal(b"words", WHOLE.beside(fewer.tolist()))


def test_who_has_all_shards_needs_nothing_beside() -> None:
    assert WHOLE.beside(range(16)) == b""
    assert len(WHOLE.beside([3])) == 4 * LEAF_BYTES
    assert Tree({0: b"x" * LEAF_BYTES}, 1).root == b"x" * LEAF_BYTES


def test_what_nobody_stands_for_is_not_worked_out() -> None:
    assert narrowed(UNSEALED, EMPTY, ALL, some(1), LAYOUT) is UNSEALED


def test_another_delta_is_another_root() -> None:
    roots = {tree_of(LESSONS.delta(chunk), ALL, LAYOUT).root for chunk in range(40)}
    roots.add(tree_of(EMPTY, ALL, LAYOUT).root)
    assert len(roots) == 41


@pytest.mark.parametrize("what", ["strength", "count", "branch", "target", "feature"])
def test_whatever_is_changed_in_a_delta_changes_its_root(what: str) -> None:
    delta = LESSONS.delta(1)
    arrays = {name: getattr(delta, name).copy() for name in ARRAYS}
    if what == "target":
        arrays["target"][0] = (arrays["target"][0] + 1) % delta.neurons
    else:
        arrays[what][-1] += 1
    assert tree_of(Delta(**arrays, names=delta.names), ALL, LAYOUT).root != WHOLE.root


def test_rows_that_change_their_shard_change_the_root() -> None:
    leaves = leaves_of(LESSONS.delta(1), ALL, LAYOUT)
    swapped = dict(leaves)
    first, second = [shard for shard in leaves if leaves[shard] != leaves[15]][:2]
    swapped[first], swapped[second] = leaves[second], leaves[first]
    assert Tree(swapped, 16).root != WHOLE.root


def test_a_branch_is_no_leaf() -> None:
    inner = Tree({0: b"a" * LEAF_BYTES, 1: b"b" * LEAF_BYTES}, 2).root
    assert Tree({0: inner}, 1).root != tree_of(EMPTY, some(0), Layout(shards=1)).root
    empty = leaves_of(EMPTY, some(0), LAYOUT)[0]
    assert Tree({0: empty, 1: empty}, 2).root != empty


@pytest.mark.parametrize("shards", [[0], [3, 4], [0, 1, 2, 3, 8]])
@pytest.mark.parametrize("wrong", ["none", "short", "half a digest", "long"])
def test_a_seal_has_just_what_is_lacking(shards: list[int], wrong: str) -> None:
    beside = WHOLE.beside(shards)
    beside = {
        "none": b"",
        "short": beside[:-LEAF_BYTES],
        "half a digest": beside + b"x",
        "long": beside + bytes(LEAF_BYTES),
    }[wrong]
    with pytest.raises(DamagedError, match="a seal"):
        tree_of(part(1, some(*shards)), some(*shards), LAYOUT, Seal(b"", beside))


def test_leaves_as_bytes() -> None:
    leaves = leaves_of(LESSONS.delta(1), ALL, LAYOUT)
    assert from_bytes(to_bytes(leaves)) == leaves
    assert Tree(from_bytes(to_bytes(leaves)), 16).root == WHOLE.root
    assert repr(WHOLE) == f"<Tree of 16 leaves: {WHOLE.root.hex()}>"
