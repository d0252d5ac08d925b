"""What is learned depends on which sequences were learned, and on nothing else."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model import sequence
from giaann_p2p.model.delta import EMPTY, Delta, total
from giaann_p2p.model.learn import learn
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import ModelSpec
from tests.helpers import SMALL, assert_same, assert_same_sequences, built, concatenated
from tests.helpers_plain import batch_of
from tests.helpers_random import sequences, specs
from tests.plain.sequence import Position

Corpus = list[list[Position]]
randoms = st.randoms(use_true_random=False)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[ModelSpec, Corpus, list[Corpus]]:
    """Draw a corpus, and the same sequences in another order, cut into batches."""
    corpus = draw(sequences)
    shuffled = draw(st.permutations(corpus))
    places = st.lists(st.integers(0, len(corpus)), max_size=4)
    borders = [0, *sorted(draw(places)), len(corpus)]
    batches = [shuffled[a:b] for a, b in pairwise(borders)]
    return draw(specs), corpus, batches


def associated(parts: list[Delta], rng: random.Random) -> Delta:
    """Add up in random pairs and groups."""
    while len(parts) > 1:
        rng.shuffle(parts)
        count = rng.randint(2, len(parts))
        parts = [*parts[count:], total(parts[:count])]
    return total(parts)


@given(partitions(), randoms)
def test_any_order_and_any_batches_give_the_same_bytes(
    drawn: tuple[ModelSpec, Corpus, list[Corpus]], rng: random.Random
) -> None:
    spec, corpus, batches = drawn
    whole = learn(batch_of(corpus, spec), spec)
    parts = [learn(batch_of(batch, spec), spec) for batch in batches]
    assert_same(total(parts), whole)
    assert_same(associated(parts, rng), whole)


@given(sequences, specs, st.data())
def test_the_parts_of_a_cut_sum_up_to_the_whole(
    corpus: Corpus, spec: ModelSpec, data: st.DataObject
) -> None:
    whole = learn(batch_of(corpus, spec), spec)
    size = whole.neurons
    part = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), np.int64)
    pieces = whole.cut(part)
    assert_same(associated(list(pieces.values()), data.draw(randoms)), whole)
    for number, piece in pieces.items():
        mine = np.flatnonzero(part == number)
        kept = [whole.find(*ids) for ids in zip(piece.concept, piece.feature, strict=True)]
        assert set(mine.tolist()) <= set(kept)
        assert {kept[i] for i in piece.source.tolist()} <= set(mine.tolist())
        assert int(piece.count.sum()) == int(whole.count[mine].sum())


@given(st.lists(sequences, max_size=3), specs)
def test_batches_put_behind_one_another_are_one_batch(
    corpora: list[Corpus], spec: ModelSpec
) -> None:
    joined = concatenated(batch_of(corpus, spec) for corpus in corpora)
    everything = [positions for corpus in corpora for positions in corpus]
    assert_same_sequences(joined, batch_of(everything, spec))


@given(words=st.permutations(["ant", "bee", "wasp"]), cut=st.integers(0, 3))
def test_words_that_share_a_number_give_the_same_bytes_in_any_order(
    words: list[str], cut: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence, "word_id", lambda _: 7)
        parts = [built(f"{word}/N") for word in words]
        wanted = total([learn(part, SMALL) for part in parts])
        assert wanted.names == {7: "ant"}
        assert_same(learn(built(*(f"{word}/N" for word in words)), SMALL), wanted)
        batches = [concatenated(parts[:cut]), concatenated(parts[cut:])]
        assert_same(total([learn(batch, SMALL) for batch in batches]), wanted)


def test_nothing_adds_up_to_nothing() -> None:
    assert_same(total([]), EMPTY)
    assert_same(total([EMPTY, EMPTY]), EMPTY)


@given(rng=randoms)
def test_real_sentences_in_any_order(
    quick: Sequences, quick_delta: Delta, spec: ModelSpec, rng: random.Random
) -> None:
    one_by_one = [learn(sequence, spec) for sequence in quick]
    assert_same(associated(one_by_one, rng), quick_delta)


def test_all_of_wiki_backwards_in_uneven_batches(
    wiki: Sequences, wiki_delta: Delta, spec: ModelSpec
) -> None:
    backwards = list(wiki)[::-1]
    borders = [0, 1, 2, 40, 41, len(backwards)]
    batches = [concatenated(backwards[a:b]) for a, b in pairwise(borders)]
    assert_same(total([learn(batch, spec) for batch in batches]), wiki_delta)
