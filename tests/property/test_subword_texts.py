"""Texts of three sentences come out the same however a document is streamed."""

import re

import pytest
import spacy
from hypothesis import example, given

from giaann_p2p.model import text as text_module
from giaann_p2p.model.subwords.spec import subword_spec
from giaann_p2p.model.subwords.texts import beginning, document_texts
from giaann_p2p.model.text import LONG_SENTENCE, LONG_WORD, Sentence
from tests.property.test_text_stream import blocks, texts

NLP = spacy.blank("en")
NLP.add_pipe("sentencizer")
SPEC = subword_spec()


def whole(text: str) -> list[Sentence]:
    """Say what must come out, of a document in one piece."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    doc = NLP(text.replace("\n", " "))
    sentences = list(doc.sents)
    found = []
    for at in range(0, len(sentences), 3):
        group = sentences[at : at + 3]
        span = doc[group[0].start : group[-1].end].text
        start = group[0].start_char + len(span) - len(span.lstrip())
        if span.strip():
            found.append(Sentence(span.lstrip(), 1 + text.count("\n", 0, start)))
    return found


def streamed(text: str, block: int) -> list[Sentence]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_module, "BLOCK", block)
        return list(document_texts([text.encode()], "text", SPEC))


@given(texts, blocks)
@example("Bees make honey.\n\n", 3)
@example("  \n Bees.  Bees make.\n\nHoney. Bees.", 2)
@example("Bees \0make honey.\0 Bees.", 4)
@example("Bees.\n \n \n \n \n \n \n Bees.", 2)
def test_a_stream_gives_the_texts_of_the_whole_document(text: str, block: int) -> None:
    assert streamed(text, block) == whole(text)


def test_a_text_keeps_no_more_words_than_can_matter() -> None:
    text = "word " * 200
    assert len(beginning(text, SPEC).split()) == 96
    assert text.startswith(beginning(text, SPEC))
    assert beginning("word " * 96, SPEC) == "word " * 96
    (sentence,) = streamed(text, 50)
    assert sentence == Sentence("word " * 96, 1)


def test_what_is_far_too_long_is_marked() -> None:
    text = "Bees. " + "bee " * 20_000 + ". Bees make honey."
    assert streamed(text, 1 << 16) == [Sentence(LONG_SENTENCE, 1)]
    (sentence,) = streamed("Bees " + "b" * 2000 + " make honey.", 1 << 16)
    assert re.search(LONG_WORD, sentence.text)
