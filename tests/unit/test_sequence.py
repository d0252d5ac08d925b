"""Sequences: what a batch holds, its parts, and what survives a trip to another process."""

import pickle

import numpy as np
import pytest

from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.sequence import SequenceBuilder, Sequences
from tests.helpers import assert_same_sequences, built, concatenated, words

BEES = "the/ bees=bee/N of/ the/ meadow/N and/ the/ bees=bee/N of/ the/ hill/N ./"


def test_a_token_is_its_concept_and_its_word() -> None:
    batch = built("the/ bees=bee/N of/ old/ meadows=meadow/N")
    bee, meadow = word_id("bee"), word_id("meadow")
    assert batch.concept.tolist() == [bee, bee, bee, meadow, meadow]
    assert batch.feature.tolist() == [word_id("the"), PRIME, word_id("of"), word_id("old"), PRIME]
    assert batch.column.tolist() == [0, 0, 0, 1, 1]
    assert batch.end.tolist() == [3, 8, 11, 15, 23]
    assert batch.words == ["the", "bee", "of", "old", "meadow"]
    assert sorted(batch.names.values()) == ["bee", "meadow", "of", "old", "the"]


@pytest.mark.parametrize(
    ("branches", "wanted"),
    [(1, [0] * 12), (2, [0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]), (3, [0] * 6 + [1] * 3 + [0] * 3)],
)
def test_a_repeated_neuron_takes_the_next_branch(branches: int, wanted: list[int]) -> None:
    assert built(BEES, branches=branches).branch.tolist() == wanted


def test_the_last_branch_takes_all_further_repeats() -> None:
    batch = built("bee/N the/ the/ the/ the/", branches=3)
    assert batch.branch.tolist() == [0, 0, 1, 2, 2]


def test_branches_are_counted_anew_in_each_sequence() -> None:
    assert built("bee/N the/ the/", "bee/N the/").branch.tolist() == [0, 0, 1, 0, 0]


def test_a_word_used_as_a_plain_word_is_not_the_concepts_noun() -> None:
    batch = built("bee/N of/ bee/ hill/N")
    assert batch.feature.tolist() == [PRIME, word_id("of"), word_id("bee"), PRIME]
    assert batch.words == ["bee", "of", "bee", "hill"]


def test_a_literal_star_is_a_word_like_any_other() -> None:
    batch = built("bee/N */")
    assert batch.feature.tolist() == [PRIME, word_id("*")]
    assert batch.words == ["bee", "*"]


def test_a_sentence_without_a_noun_adds_nothing() -> None:
    builder = SequenceBuilder(2)
    assert not builder.add(words("the/ old/ ./"))
    assert not builder.add([])
    batch = builder.build()
    assert len(batch) == 0
    assert batch.names == {}
    assert batch.concept.dtype == np.uint64
    assert batch.starts.tolist() == [0]


def test_parts_of_a_batch() -> None:
    batch = built("bee/N the/", "hill/N", BEES)
    assert [len(one.concept) for one in batch] == [2, 1, 12]
    assert batch[1:3].starts.tolist() == [0, 1, 13]
    assert batch[1:3].words == ["hill", *built(BEES).words]
    assert batch[2:3].branch.tolist() == built(BEES).branch.tolist()
    assert len(batch[3:]) == len(batch[2:1]) == 0
    assert_same_sequences(concatenated(batch), batch)
    assert_same_sequences(concatenated([batch[:1], batch[1:]]), batch)


def test_only_consecutive_parts() -> None:
    with pytest.raises(ValueError, match="step 1"):
        built("bee/N", "hill/N")[::2]


def test_nothing_concatenated_is_an_empty_batch() -> None:
    assert_same_sequences(concatenated([]), SequenceBuilder(2).build())


def test_a_batch_survives_pickling() -> None:
    batch = built(BEES)
    assert batch.words
    copy: Sequences = pickle.loads(pickle.dumps(batch))  # noqa: S301
    assert "words" not in vars(copy)
    assert_same_sequences(copy, batch)
    assert copy.words == batch.words
