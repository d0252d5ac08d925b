"""The fast model and the plain one of `tests.plain` come to the very same numbers."""

from collections.abc import Sequence

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model.columns import Word, merge_nouns
from giaann_p2p.model.learn import learn
from giaann_p2p.model.sequence import SequenceBuilder, Sequences
from giaann_p2p.model.spec import ModelSpec
from tests.helpers import assert_same
from tests.helpers_plain import (
    batch_of,
    connections_of,
    delimiter_of,
    occurrences_of,
    positions_of,
    remembered,
    shape_of,
)
from tests.helpers_random import sequences, specs, tokens
from tests.plain import learn as plain
from tests.plain.sequence import NOUN_TAGS, Position, Token
from tests.plain.sequence import sequence as plain_sequence


def words_of(sentence: Sequence[Token]) -> list[Word]:
    """Return tokens as the parser gives them."""
    found = []
    place = 0
    for token in sentence:
        end = place + len(token.text)
        text, lemma = token.text.lower(), token.lemma.lower()
        found.append(Word(text, lemma, token.pos in NOUN_TAGS, place, end))
        place = end + 1
    return found


@given(st.lists(tokens, max_size=20), st.integers(1, 3))
def test_sentences_become_the_same_sequences(sentence: list[Token], branches: int) -> None:
    spec = ModelSpec(branches=branches)
    builder = SequenceBuilder(branches)
    wanted = plain_sequence(sentence, delimiter_of)
    assert builder.add(merge_nouns(words_of(sentence))) == (wanted is not None)
    batch = builder.build()
    assert len(batch) == (wanted is not None)
    assert positions_of(batch) == (wanted or [])
    branches_of = plain.branches_of(wanted or [], shape_of(spec))
    assert batch.branch.tolist() == branches_of


@given(sequences, specs)
def test_sequences_become_the_same_connections(
    device: torch.device, corpus: list[list[Position]], spec: ModelSpec
) -> None:
    memory = remembered(corpus, shape_of(spec))
    delta = learn(batch_of(corpus, spec), spec, device)
    assert connections_of(delta) == memory.connections
    assert occurrences_of(delta) == {
        **dict.fromkeys((key.target for key in memory.connections), 0),
        **memory.occurrences,
    }


@given(sequences, specs)
def test_neurons_and_connections_stand_in_order(
    corpus: list[list[Position]], spec: ModelSpec
) -> None:
    delta = learn(batch_of(corpus, spec), spec)
    neurons = list(zip(delta.concept.tolist(), delta.feature.tolist(), strict=True))
    fields = (delta.source, delta.target, delta.branch, delta.segment)
    connections = list(zip(*(field.tolist() for field in fields), strict=True))
    assert neurons == sorted(set(neurons))
    assert connections == sorted(set(connections))
    assert (np.diff(delta.row_starts) >= 0).all()
    assert delta.row_starts[[0, -1]].tolist() == [0, delta.connections]


def test_all_of_wiki_is_learned_the_same(
    device: torch.device, wiki: Sequences, spec: ModelSpec
) -> None:
    delta = learn(wiki, spec, device)
    memory = remembered(map(positions_of, wiki), shape_of(spec))
    assert connections_of(delta) == memory.connections
    assert occurrences_of(delta) == memory.occurrences
    assert_same(delta, learn(wiki, spec))
