"""Sequences of tokens are learned as the plain version learns them, in any order and split."""

from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model.delta import EMPTY, total
from giaann_p2p.model.digest import digest
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.spec import of_subwords
from tests.helpers import assert_same
from tests.helpers_subwords import (
    RECOMMENDED,
    REFERENCE,
    batch_of,
    learned,
    positions_of,
    random_sequences,
    random_specs,
    remembered,
    sequences_named,
)
from tests.plain.subwords import Memory, Position

Corpus = list[list[Position]]


def assert_equal(found: Memory, wanted: Memory, spec: ModelSpec) -> None:
    assert +found.occurrences == wanted.occurrences
    assert found.connections == wanted.connections
    assert found.delimiters == wanted.delimiters
    if of_subwords(spec).any_column:
        assert (found.tokens, found.pairs) == (wanted.tokens, wanted.pairs)
    else:
        assert not found.tokens
        assert not found.pairs


@given(random_sequences, random_specs)
def test_sequences_become_the_same_connections(corpus: Corpus, spec: ModelSpec) -> None:
    delta = learn_tokens(batch_of(corpus), spec)
    assert_equal(learned(delta, spec), remembered(corpus, spec), spec)


@given(random_sequences, random_specs, st.data())
def test_any_order_and_any_split_give_the_same_bytes(
    corpus: Corpus, spec: ModelSpec, data: st.DataObject
) -> None:
    whole = learn_tokens(batch_of(corpus), spec)
    order = data.draw(st.permutations(corpus))
    at = data.draw(st.integers(0, len(order)))
    parts = [learn_tokens(batch_of(part), spec) for part in (order[:at], order[at:])]
    assert_same(total(parts), whole)
    assert digest(total(parts)) == digest(whole)


def test_all_of_wiki_is_learned_the_same() -> None:
    wiki = sequences_named("wiki")
    for spec in (REFERENCE, RECOMMENDED):
        wanted = remembered(map(positions_of, wiki), spec)
        assert_equal(learned(learn_tokens(wiki, spec), spec), wanted, spec)


def test_one_by_one_and_backwards_is_the_same() -> None:
    wiki = sequences_named("wiki")
    whole = learn_tokens(wiki, RECOMMENDED)
    parts = [learn_tokens(one, RECOMMENDED) for one in wiki]
    assert_same(total(parts[::-1]), whole)
    assert_same(learn_tokens(wiki[:0], RECOMMENDED), EMPTY)
