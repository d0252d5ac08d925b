"""The sum type: look-up, digest, addition and its limits."""

from dataclasses import replace

import numpy as np
import pytest

from giaann_p2p.model.delta import (
    EMPTY,
    ConnectionKey,
    Delta,
    contains,
    total,
    unique_neurons,
)
from giaann_p2p.model.digest import digest, readable
from giaann_p2p.model.learn import learn
from tests.helpers import ARRAYS, SMALL, assert_same, built

BEES = "the/ bee/N of/ the/ meadow/N makes/ honey/N"
WASPS = "the/ wasp/N of/ the/ meadow/N makes/ none/"


@pytest.fixture
def bees() -> Delta:
    return learn(built(BEES), SMALL)


@pytest.fixture
def wasps() -> Delta:
    return learn(built(WASPS), SMALL)


def delta_of(strength: int, name: str = "bee") -> Delta:
    """Return a delta of one neuron, connected to itself."""
    return Delta(
        np.array([5], np.uint64),
        np.array([0], np.uint64),
        np.array([1]),
        np.array([0, 1]),
        np.array([0], np.int32),
        np.array([0], np.uint8),
        np.array([4], np.uint8),
        np.array([strength]),
        {5: name},
    )


def test_counts_of_neurons_and_connections(bees: Delta) -> None:
    assert bees.neurons == len(bees.concept) == 7
    assert bees.connections == len(bees.strength) == int(bees.row_starts[-1])
    assert (EMPTY.neurons, EMPTY.connections) == (0, 0)


def test_a_sum_contains_its_parts_and_they_do_not_contain_it(bees: Delta, wasps: Delta) -> None:
    both = total([bees, wasps])
    for part in (bees, wasps, both, EMPTY):
        assert contains(both, part)
    assert not contains(bees, both)
    assert not contains(bees, wasps)
    assert not contains(EMPTY, bees)
    for name in ("count", "strength"):
        array = getattr(both, name).copy()
        array[np.flatnonzero(array)[2]] += 1
        assert not contains(both, replace(both, **{name: array})), name


def test_the_source_of_each_connection(bees: Delta) -> None:
    assert bees.source.dtype == np.int32
    assert np.bincount(bees.source, minlength=7).tolist() == np.diff(bees.row_starts).tolist()
    assert (np.diff(bees.source) >= 0).all()


def test_every_neuron_is_found_where_it_is(bees: Delta) -> None:
    pairs = zip(bees.concept.tolist(), bees.feature.tolist(), strict=True)
    assert [bees.find(*pair) for pair in pairs] == list(range(bees.neurons))


def test_what_is_not_there_is_not_found(bees: Delta) -> None:
    known = set(zip(bees.concept.tolist(), bees.feature.tolist(), strict=True))
    for concept in [*bees.concept.tolist(), 1, 2**64 - 1]:
        for feature in [*bees.feature.tolist(), 1, 2**64 - 1]:
            assert (bees.find(concept, feature) is None) == ((concept, feature) not in known)
    assert EMPTY.find(0, 0) is None


def test_unique_neurons_stand_in_order() -> None:
    concept = np.array([9, 2, 9, 2, 9], np.uint64)
    feature = np.array([1, 7, 0, 7, 1], np.uint64)
    found = unique_neurons(concept, feature)
    assert [array.tolist() for array in found] == [[2, 9, 9], [7, 0, 1], [2, 0, 1, 0, 2]]


def test_the_digest_is_that_of_the_knowledge(bees: Delta, wasps: Delta) -> None:
    assert digest(bees) == digest(learn(built(BEES), SMALL))
    assert len({digest(bees), digest(wasps), digest(EMPTY)}) == 3
    unused = replace(bees, names=bees.names | {12345: "unused"})
    assert digest(unused) == digest(bees)


@pytest.mark.parametrize("name", ARRAYS)
def test_the_digest_covers_every_array(bees: Delta, name: str) -> None:
    changed = getattr(bees, name).copy()
    if name == "row_starts":
        changed[-2] -= 1  # the last but one row's last connection is the last one's
    else:
        changed[-1] += 1
    assert digest(replace(bees, **{name: changed})) != digest(bees)


def test_the_digest_covers_the_names(bees: Delta) -> None:
    number = int(bees.concept[0])
    assert digest(replace(bees, names=bees.names | {number: "x"})) != digest(bees)
    without = {k: v for k, v in bees.names.items() if k != number}
    assert digest(replace(bees, names=without)) != digest(bees)


def test_the_digest_is_pinned() -> None:
    pinned = "e1b7b89cddcc98a84e5a728ef8951b05e85605801912e21a6005d3896a1c370e"
    assert readable(digest(learn(built(BEES, WASPS), SMALL))) == pinned


def test_a_sum_counts_and_strengthens(bees: Delta, wasps: Delta) -> None:
    both = total([bees, wasps])
    assert_same(both, learn(built(BEES, WASPS), SMALL))
    twice = total([bees, bees])
    assert (twice.count == 2 * bees.count).all()
    assert (twice.strength == 2 * bees.strength).all()
    assert twice.target.tolist() == bees.target.tolist()


def test_nothing_is_the_zero(bees: Delta) -> None:
    assert_same(total([bees, EMPTY]), bees)
    assert_same(total([EMPTY, bees, EMPTY]), bees)
    assert total([bees]) is bees


def test_a_sum_that_fits_is_exact() -> None:
    most = 2**62 - 1
    assert total([delta_of(most), delta_of(most)]).strength.tolist() == [2 * most]


def test_a_sum_that_would_outgrow_64_bits_is_refused() -> None:
    with pytest.raises(OverflowError, match="strength would outgrow 64 bits"):
        total([delta_of(2**62), delta_of(1)])
    with pytest.raises(OverflowError, match="outgrow"):
        total([delta_of(2**62 - 1)] * 3)


def test_more_neurons_than_the_key_can_hold_are_refused() -> None:
    key = ConnectionKey.for_sizes(2**29, branches=2, segments=11)
    assert (key.slot_bits, key.branch_bits, key.segment_bits) == (29, 1, 4)
    with pytest.raises(OverflowError, match="536870913 neurons are too many for one delta"):
        ConnectionKey.for_sizes(2**29 + 1, branches=2, segments=11)
    with pytest.raises(OverflowError, match="too many"):
        ConnectionKey.for_sizes(2**29, branches=3, segments=11)


def test_the_largest_key_still_sorts() -> None:
    key = ConnectionKey.for_sizes(2**29, branches=2, segments=16)
    last = [np.array([n]) for n in (2**29 - 1, 2**29 - 1, 1, 15)]
    assert key.pack(*last).tolist() == [2**63 - 1]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_texts_for_one_number_the_smaller_wins(order: tuple[int, int]) -> None:
    parts = [delta_of(1, "bee"), delta_of(1, "ant")]
    assert total([parts[i] for i in order]).names == {5: "ant"}


def test_a_part_has_the_names_that_it_needs(bees: Delta) -> None:
    last = np.diff(bees.row_starts) == 0  # the last word leads nowhere
    pieces = bees.cut(last.astype(np.int64))
    assert set(pieces) == {0, 1}
    assert set(pieces[1].names.values()) == {"honey"}
    for piece in pieces.values():
        used = set(piece.concept.tolist()) | set(piece.feature.tolist())
        assert set(piece.names) == used - {0}
    assert EMPTY.cut(np.empty(0, np.int64)) == {}


@pytest.mark.parametrize("chosen", range(1 << 7))
def test_the_chosen_rows_are_taken(chosen: int, bees: Delta) -> None:
    rows = np.flatnonzero([chosen >> row & 1 for row in range(bees.neurons)])
    lengths = bees.lengths[rows]
    taken = bees.take(rows)
    reached = [bees.target[bees.row_starts[row] : bees.row_starts[row + 1]] for row in rows]
    kept = sorted({*rows.tolist(), *np.concatenate([*reached, rows[:0]]).tolist()})
    assert taken.concept.tolist() == bees.concept[kept].tolist()
    assert taken.feature.tolist() == bees.feature[kept].tolist()
    at = [kept.index(row) for row in rows]
    assert taken.count[at].tolist() == bees.count[rows].tolist()
    assert taken.lengths[at].tolist() == lengths.tolist()
    assert taken.count.sum() == bees.count[rows].sum()
    assert taken.connections == lengths.sum()
    held = np.isin(bees.source, rows)
    assert [kept[slot] for slot in taken.target] == bees.target[held].tolist()
    for name in ("branch", "segment", "strength"):
        assert getattr(taken, name).tolist() == getattr(bees, name)[held].tolist()
    used = {*taken.concept.tolist(), *taken.feature.tolist()}
    assert taken.names == {word: text for word, text in bees.names.items() if word in used}


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 7), (2, 3), (3, 7)])
def test_a_range_of_rows_is_taken(first: int, last: int, bees: Delta) -> None:
    assert_same(bees.rows(first, last), bees.take(np.arange(first, last)))
