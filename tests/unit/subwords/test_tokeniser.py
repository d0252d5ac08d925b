"""The tokeniser: identified by its ranks; names and numbers of tokens are unique."""

import sys

import numpy as np
import pytest

from giaann_p2p.errors import PipelineError
from giaann_p2p.model.ids import PRIME, word_id
from giaann_p2p.model.subwords import tokeniser as module
from giaann_p2p.model.subwords.ids import RESERVED
from giaann_p2p.model.subwords.tokeniser import O200K, TOKENS, Tokeniser, digest_of, tokeniser
from giaann_p2p.store.cut_columns import columns_in
from giaann_p2p.store.cuts import MARK


@pytest.fixture(scope="module")
def o200k() -> Tokeniser:
    return tokeniser()


def test_the_ranks_are_those_of_o200k(o200k: Tokeniser) -> None:
    assert len(o200k.bytes) == TOKENS
    assert digest_of(o200k.bytes) == O200K
    assert digest_of(o200k.bytes[:-1]) != O200K


def test_a_text_becomes_tokens_and_back(o200k: Tokeniser) -> None:
    text = "Hello wörld 2015, it's (very) nice… 東京 😀  two"
    tokens = o200k.encode(text)
    assert tokens[:5] == [13225, 286, 2877, 582, 220]
    assert o200k.decode(tokens) == text


def test_special_tokens_are_text_like_any_other(o200k: Tokeniser) -> None:
    tokens = o200k.encode("<|endoftext|>")
    assert max(tokens) < TOKENS
    assert o200k.decode(tokens) == "<|endoftext|>"


def test_names_tell_all_tokens_apart_and_name_no_reserved_concept(o200k: Tokeniser) -> None:
    names = set(o200k.names)
    assert len(names) == TOKENS
    assert "" not in names
    assert not names & set(RESERVED)


def test_numbers_tell_all_tokens_apart_and_are_none_that_is_reserved(o200k: Tokeniser) -> None:
    numbers = set(o200k.ids.tolist())
    assert len(numbers) == TOKENS
    assert not numbers & {PRIME, *map(word_id, RESERVED)}
    assert o200k.ids[13225] == word_id("Hello")


def test_numbers_lead_back_to_tokens(o200k: Tokeniser) -> None:
    assert np.array_equal(o200k.tokens_of(o200k.ids), np.arange(TOKENS))
    others = np.array([PRIME, word_id("no token at all"), (1 << 64) - 1], np.uint64)
    assert o200k.tokens_of(others).tolist() == [-1, -1, -1]


def test_a_part_of_a_character_has_a_name_and_no_text(o200k: Tokeniser) -> None:
    partial = o200k.bytes.index(b"\xa1")
    assert o200k.texts[partial] is None
    assert o200k.names[partial] == "bytes a1"


def test_another_tokeniser_is_refused_with_advice() -> None:
    with pytest.raises(PipelineError, match=f"ranks 0123.*{O200K}.*pip install bpe-openai==0.1.4"):
        tokeniser("0123")


def test_a_missing_tokeniser_is_reported_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_loaded", module._loaded.__wrapped__)
    monkeypatch.setitem(sys.modules, "bpe_openai", None)  # importing it fails
    with pytest.raises(PipelineError, match=r"pip install bpe-openai==0\.1\.4$"):
        tokeniser.__wrapped__(O200K)


def test_no_token_is_the_name_of_a_part_of_a_column(o200k: Tokeniser) -> None:
    assert [name for name in o200k.names if MARK in name] == [MARK]
    assert not columns_in(o200k.names)
