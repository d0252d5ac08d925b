"""The tagger says what spaCy's whole pipeline says, though it asks for each word once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language

from giaann_p2p.model import english, tagger
from giaann_p2p.model.columns import Word
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.tagger import Tagger
from tests.helpers import DATA


@pytest.fixture(scope="module")
def nlp(spec: ModelSpec) -> Language:
    return english.pipeline(spec)


def whole(text: str, nlp: Language) -> list[Word]:
    """Return the words as the whole pipeline gives them."""
    nouns = ("NOUN", "PROPN")
    return [
        Word(t.lower_, t.lemma_.lower(), t.pos_ in nouns, t.idx, t.idx + len(t.text))
        for t in nlp(text)
    ]


def tagged(text: str, nlp: Language) -> list[Word]:
    one = Tagger(nlp)
    (found,) = one.words([one.tokenize(text)])
    return found


def relevant(words: list[Word]) -> list[Word]:
    """Leave out the lemmas of what is no noun: they name nothing."""
    return [word if word.noun else word._replace(lemma="") for word in words]


def test_all_of_wiki_is_tagged_as_by_the_whole_pipeline(nlp: Language) -> None:
    lines = (DATA / "wiki.txt").read_text().splitlines()
    one = Tagger(nlp)
    found = list(one.words(map(one.tokenize, lines)))
    assert found == [whole(line, nlp) for line in lines]
    assert list(one.words(map(one.tokenize, lines))) == found  # now from memory


def test_the_tagger_sees_a_sentence_as_if_it_were_alone(nlp: Language) -> None:
    """To the last bit: what it is parsed with must make no difference to what is learned."""
    lines = (DATA / "wiki.txt").read_text().splitlines()
    together = list(nlp.pipe(lines, batch_size=len(lines)))
    backwards = list(nlp.pipe(lines[::-1], batch_size=7))[::-1]
    for line, one, other in zip(lines, together, backwards, strict=True):
        alone = nlp(line).tensor
        assert alone.shape[1] == 96
        assert alone.tobytes() == one.tensor.tobytes() == other.tensor.tobytes()


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
    monkeypatch.setattr(tagger, "_MOST", 3)
    one = Tagger(nlp)
    for text in ("The bees make honey in the summer.", "A wasp makes none of it."):
        (found,) = one.words([one.tokenize(text)])
        assert found == whole(text, nlp)
        assert len(one._meanings) <= 3


def test_no_sentence_no_words(nlp: Language) -> None:
    assert list(Tagger(nlp).words([])) == []
    assert tagged("", nlp) == []
