"""Sentences come out the same however a text is streamed: those of spaCy, on the whole text."""

import io
import re
from itertools import pairwise

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st

from giaann_p2p.model import text as text_module
from giaann_p2p.model.text import LONG_SENTENCE, LONG_WORD, Sentence, document_sentences, sentences

NLP = spacy.blank("en")
NLP.add_pipe("sentencizer")

NO_LIMIT = 10**6

words = st.sampled_from(
    ["Bees", "make", "honey.", "e.g.", "(yes!)", '"No."', "…", ")", ".", "?!", '"', "über", "🐝"]
)
gaps = st.sampled_from(
    [" ", " ", " ", "", "", "  ", "\n", "\r\n", "\r", "\n\n", "\t", " \n ", "\xa0", "\x0b"]
)
texts = st.lists(st.tuples(words, gaps), max_size=25).map(
    lambda pairs: "".join(part for pair in pairs for part in pair)
)
blocks = st.integers(1, 40)


def whole(text: str, max_chars: int = NO_LIMIT) -> list[Sentence]:
    """Say what must come out, of a text in one piece."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"\S{1001,}", LONG_WORD, text)
    found = []
    for span in NLP(text.replace("\n", " ")).sents:
        sentence = span.text.lstrip()
        start = span.start_char + len(span.text) - len(sentence)
        if sentence:
            kept = LONG_SENTENCE if len(sentence) > max_chars else sentence
            found.append(Sentence(kept, 1 + text.count("\n", 0, start)))
    return found


def streamed(text: str, block: int, max_chars: int = NO_LIMIT) -> list[Sentence]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "BLOCK", block)
        return list(document_sentences(io.BytesIO(text.encode()), "text", max_chars))


@given(texts, blocks)
@example("Bees make honey.\r\nBees make honey.\r\n", 17)
@example("Bees make honey.\r\n\r\nBees.", 1)
@example("  \n Bees", 2)
@example('Bees make honey."?Bees make honey.', 100)
@example('"No."e.g. Bees ', 1)
def test_a_stream_gives_the_sentences_of_the_whole_text(text: str, block: int) -> None:
    assert streamed(text, block) == whole(text)


@given(texts, st.lists(st.integers(0, 300), max_size=6), blocks)
def test_pieces_of_any_size_give_the_same(text: str, cuts: list[int], block: int) -> None:
    text = text.replace("\r", "")
    borders = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(borders)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "BLOCK", block)
        assert list(sentences(pieces, NO_LIMIT)) == whole(text)


@given(texts, blocks, st.integers(8, 40))
@example("Bees make honey\nand make\nhoney. Bees.", 100, 8)
@example("Bees" + "\n" * 30 + "make honey. Bees.", 8, 10)
@example("Bees make honey honey. ) Bees.", 24, 8)
@example("\n" * 30 + "Bees.", 4, 8)
@example("Bees\n" * 8 + "\n" * 30 + "make honey. Bees.", 4, 8)
def test_too_long_sentences_are_marked_where_they_start(
    text: str, block: int, max_chars: int
) -> None:
    assert streamed(text, block, max_chars) == whole(text, max_chars)


@given(texts, texts, st.sampled_from([1001, 1002, 2500]), st.sampled_from([100, 1000, 1003, 5000]))
def test_too_long_words_are_marked(before: str, after: str, length: int, block: int) -> None:
    text = f"{before}{'x' * length}{after}"
    assert streamed(text, block) == whole(text)


def test_the_longest_word_that_is_kept_has_1000_characters() -> None:
    kept, marked = "x" * 1000, "x" * 1001
    assert streamed(f"{kept}. {marked}", 10) == whole(f"{kept}. {marked}")
    assert [s.text for s in streamed(f"a {kept} b", 64)] == [f"a {kept} b"]
    assert [s.text for s in streamed(f"a {marked} b", 64)] == [f"a {LONG_WORD} b"]
