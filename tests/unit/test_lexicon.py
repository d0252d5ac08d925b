"""The word lists: what they say, where they come from, what their digest covers."""

import csv
import gzip
from collections.abc import Iterator
from importlib import resources

import pytest

from giaann_p2p.model import lexicon
from giaann_p2p.model.lexicon import Delimiter, delimiter
from giaann_p2p.model.spec import LEXICON_1, ModelSpec


def listed_verbs() -> Iterator[str]:
    """Read every form that lemminflect's two tables list under `verb`, base forms included."""
    for table in ("lemma_lu", "infl_lu"):
        path = resources.files("lemminflect") / "resources" / f"{table}.csv.gz"
        with path.open("rb") as packed, gzip.open(packed, "rt", encoding="utf-8") as file:
            for base, category, *forms in csv.reader(file, quoting=csv.QUOTE_NONE):
                if category == "verb":
                    yield base.lower()
                    for form in forms:
                        yield from (part.lower() for part in form.split("/") if part)


def listed(name: str) -> list[str]:
    data = resources.files("giaann_p2p.model") / "data" / name
    lines = data.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_the_verbs_are_those_of_lemminflect() -> None:
    verbs = listed("verbs.txt")
    assert verbs == sorted(set(listed_verbs()))
    assert len(verbs) > 20_000


def test_the_closed_classes_are_classes_of_words() -> None:
    pairs = [tuple(line.split("\t")) for line in listed("closed_classes.tsv")]
    assert {kind for _, kind in pairs} == {"ADP", "CCONJ", "SCONJ"}
    assert len(set(pairs)) == len(pairs)
    assert all(word == word.lower() for word, _ in pairs)


def test_the_specs_digest_is_that_of_the_lists() -> None:
    assert lexicon.digest() == LEXICON_1 == ModelSpec().lexicon


def test_the_digest_covers_words_and_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    classes = {"run": Delimiter.DETERMINISTIC, "and": Delimiter.PROBABILISTIC}
    changed = {"run": Delimiter.DETERMINISTIC, "and": Delimiter.DETERMINISTIC}
    digests = set()
    for one in (classes, changed, {"run": Delimiter.DETERMINISTIC}):
        monkeypatch.setattr(lexicon, "_classes", lambda one=one: one)
        digests.add(lexicon.digest.__wrapped__())
    assert len(digests) == 3


@pytest.mark.parametrize("word", list(";:.?!"))
def test_sentence_marks_delimit_for_certain(word: str) -> None:
    assert delimiter(word) is Delimiter.DETERMINISTIC


@pytest.mark.parametrize("word", ["run", "ran", "running", "be", "'ll", "cook", "of", "in", "that"])
def test_what_can_be_a_verb_or_an_adposition_delimits_for_certain(word: str) -> None:
    assert delimiter(word) is Delimiter.DETERMINISTIC


@pytest.mark.parametrize("word", ["and", "or", "but", ",", "("])
def test_conjunctions_and_commas_delimit_when_nothing_better_does(word: str) -> None:
    assert delimiter(word) is Delimiter.PROBABILISTIC


@pytest.mark.parametrize("word", ["the", "red", ")", "-", "*", "", "honey_bee", "#", "Run", "ADP"])
def test_other_words_delimit_nothing(word: str) -> None:
    assert delimiter(word) is Delimiter.NONE


def test_the_stronger_class_wins() -> None:
    assert max(Delimiter) is Delimiter.DETERMINISTIC
    assert min(Delimiter) is Delimiter.NONE
    kinds = {line for line in listed("closed_classes.tsv") if line.startswith("about\t")}
    assert kinds == {"about\tADP", "about\tSCONJ"}
    assert delimiter("about") is Delimiter.DETERMINISTIC
