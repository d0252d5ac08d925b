"""Learning: which connections a sequence makes, and how strong they are."""

import numpy as np
import pytest
import torch

from giaann_p2p.model import learn as learning
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.learn import learn
from giaann_p2p.model.rows import Name
from giaann_p2p.model.sequence import SequenceBuilder, Sequences
from giaann_p2p.model.spec import UNITS, ModelSpec, increment
from tests.helpers import SMALL, assert_same, built, strength_of

BEE, THE, OF = Name("bee", None), Name("bee", "the"), Name("bee", "of")
HILL = Name("hill", None)


@pytest.mark.parametrize(
    ("distance", "units"),
    [
        (1, 327680),
        (2, 218453),
        (3, 163840),
        (4, 131072),
        (5, 109227),
        (6, 93623),
        (7, 81920),
        (8, 72818),
        (12, 50412),
        (79, 8192),
        (999, 655),
    ],
)
def test_the_increment_is_ten_by_the_distance_plus_one(distance: int, units: int) -> None:
    assert increment(distance) == units
    assert abs(increment(distance) - 10 * UNITS / (distance + 1)) <= 0.5


def test_nothing_is_learned_from_nothing(device: torch.device) -> None:
    assert_same(learn(SequenceBuilder(2).build(), SMALL, device), EMPTY)


def test_a_sequence_of_one_token_has_a_neuron_and_no_connection(device: torch.device) -> None:
    delta = learn(built("bee/N", "bee/N", "hill/N"), SMALL, device)
    assert delta.connections == 0
    assert sorted(delta.count.tolist()) == [1, 2]
    assert delta.row_starts.tolist() == [0, 0, 0]


def test_a_pair_is_connected_by_token_and_by_column_distance(device: torch.device) -> None:
    delta = learn(built("the/ bee/N"), SMALL, device)
    assert delta.connections == 2
    # Segments of SMALL: 0, 1 by column (1: the same), 2 to 4 by token (4: adjacent).
    for segment in (1, 4):
        assert strength_of(delta, THE, BEE, 0, segment) == increment(1)
    assert delta.find(*BEE.neuron) is not None
    assert delta.count.tolist() == [1, 1]


@pytest.mark.parametrize(("distance", "segment"), [(1, 4), (2, 3), (3, 2), (4, 2), (9, 2)])
def test_the_feature_segment_tells_the_token_distance(distance: int, segment: int) -> None:
    between = "the/ " * (distance - 1)
    delta = learn(built(f"a/ {between} bee/N"), SMALL)
    source = Name("bee", "a")
    found = [strength_of(delta, source, BEE, 0, s) for s in range(2, 5)]
    assert found == [increment(distance) if s == segment else 0 for s in range(2, 5)]


def test_the_column_segment_tells_the_column_distance() -> None:
    delta = learn(built("bee/N of/ hill/N of/ sun/N"), SMALL)
    sun = Name("sun", None)
    assert strength_of(delta, BEE, OF, 0, 1) == increment(1)
    assert strength_of(delta, BEE, HILL, 0, 0) == increment(2)
    assert strength_of(delta, BEE, HILL, 0, 1) == 0
    assert [strength_of(delta, BEE, sun, 0, s) for s in (0, 1)] == [0, 0]
    assert strength_of(delta, BEE, sun, 0, 2) == increment(4)


def test_columns_of_one_concept_are_told_apart() -> None:
    delta = learn(built("bee/N of/ hill/N of/ bee/N"), SMALL)
    assert [strength_of(delta, BEE, BEE, 1, s) for s in (0, 1)] == [0, 0]
    assert strength_of(delta, BEE, BEE, 1, 2) == increment(4)


def test_a_repeat_is_reached_on_a_branch_of_its_own() -> None:
    delta = learn(built("bee/N the/ the/ the/"), SMALL)
    assert strength_of(delta, BEE, THE, 0, 4) == increment(1)
    assert strength_of(delta, BEE, THE, 1, 4) == 0
    assert strength_of(delta, BEE, THE, 1, 3) == increment(2)
    assert strength_of(delta, THE, THE, 1, 4) == 2 * increment(1)
    assert strength_of(delta, THE, THE, 0, 4) == 0
    assert int(delta.count[delta.find(*THE.neuron)]) == 3


def test_what_comes_twice_adds_up() -> None:
    once, twice = learn(built("the/ bee/N"), SMALL), learn(built(*["the/ bee/N"] * 2), SMALL)
    assert (twice.strength == 2 * once.strength).all()
    assert (twice.count == 2 * once.count).all()


def test_all_pairs_are_connected_forward_only() -> None:
    spec = ModelSpec(seed_tokens=12)
    delta = learn(built("a/ b/ c/ d/ e/ bee/N"), spec)
    assert delta.connections == 2 * 15  # all in one column
    last = delta.find(*BEE.neuron)
    assert not (delta.source == last).any()


def test_the_longest_sentence_of_the_largest_model_is_learned(device: torch.device) -> None:
    spec = ModelSpec(max_tokens=1000)
    delta = learn(built("bee/N " + "the/ " * 999), spec, device)
    # 999 places behind the bee, 998 ... 1 behind each "the": each increment in two segments.
    wanted = 2 * sum((1000 - d) * increment(d) for d in range(1, 1000))
    assert int(delta.strength.sum()) == wanted
    assert delta.strength.dtype == np.int64


@pytest.mark.parametrize("most", [1, 4, 9, 20, 10**6])
def test_what_is_learned_in_parts_is_the_same(
    most: int, monkeypatch: pytest.MonkeyPatch, device: torch.device
) -> None:
    batch = built("the/ bee/N", "a/ bee/N of/ hill/N", "bee/N", "hill/N ./", "the/ bee/N")
    whole = learn(batch, SMALL, device)
    monkeypatch.setattr(learning, "_MOST_PAIRS", most)
    assert_same(learn(batch, SMALL, device), whole)


@pytest.mark.parametrize(
    ("lengths", "parts"),
    [
        ([], [0]),
        ([2, 2], [2]),
        ([2, 2, 2], [2, 1]),
        ([1] * 9, [8, 1]),
        ([1, 1, 2, 1], [2, 2]),
        ([1, 9, 1], [1, 1, 1]),
    ],
)
def test_no_part_but_a_single_sequence_has_too_many_pairs(
    lengths: list[int], parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "_MOST_PAIRS", 8)
    batch = built(*("bee/N " + "the/ " * (length - 1) for length in lengths))
    assert [len(part) for part in learning._parts(batch)] == parts


def test_the_wiki_in_small_parts_is_the_same(
    wiki: Sequences, wiki_delta: Delta, spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "_MOST_PAIRS", 20_000)
    assert_same(learn(wiki, spec), wiki_delta)


def test_memory_is_bounded_whatever_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    # The same sentence often: much to reckon, little to hold.
    boxes: list[int] = []
    dense = learning._dense

    def measured(batch: Sequences, spec: ModelSpec, device: str) -> Delta:
        boxes.append(len(batch) * int(np.diff(batch.starts).max()) ** 2)
        return dense(batch, spec, device)

    monkeypatch.setattr(learning, "_dense", measured)
    spec = ModelSpec(max_tokens=1000)
    delta = learn(built(*["bee/N " + "the/ " * 999] * 3, *["the/ bee/N"] * 500), spec)
    assert max(boxes) <= 1 << 20
    assert len(boxes) == 4
    assert int(delta.count.sum()) == 4000
