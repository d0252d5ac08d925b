"""From tagged tokens to columns: merging nouns, finding concepts, drawing boundaries."""

import pytest

from giaann_p2p.model.columns import Word, columns, concepts, merge_nouns
from tests.helpers import words


def merged(sentence: str) -> str:
    return " ".join(word.text for word in merge_nouns(words(sentence)))


def homes(sentence: str) -> list[str]:
    """Name the concept of each word."""
    found = merge_nouns(words(sentence))
    nouns = concepts(found)
    return [found[nouns[column]].lemma for column in columns(found, nouns)]


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("the/ bee/N sleeps/", "the bee sleeps"),
        ("honey/N bee/N queen/N", "honey_bee_queen"),
        ("left/N -/ wing/N", "left-wing"),
        ("left/N –/ wing/N", "left-wing"),
        ("left/N -/ wing/N party/N", "left-wing_party"),
        ("a/N b/N -/ c/N", "a_b-c"),
        ("left/N -/N wing/N", "left_-_wing"),
        ("left/N -/ -/ wing/N", "left - - wing"),
        ("left/N -/ winged/", "left - winged"),
        ("left/N -/", "left -"),
        ("-/ left/N", "- left"),
        ("anti/ -/ wing/N", "anti - wing"),
        ("left/N —/ wing/N", "left — wing"),
        ("", ""),
    ],
)
def test_neighbouring_nouns_merge_and_swallow_a_dash(sentence: str, text: str) -> None:
    assert merged(sentence) == text


def test_a_merged_noun_has_joined_lemmas_and_the_place_of_all_its_parts() -> None:
    merged_words = merge_nouns(words("old/ bees=bee/N -/ wings=wing/N parts=part/N ./"))
    assert merged_words[1] == Word("bees-wings_parts", "bee-wing_part", True, 4, 22)
    assert [word.text for word in merged_words] == ["old", "bees-wings_parts", "."]


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("the/ human/N red/ nature/N", ["nature"]),
        ("the/ human/N of/ nature/N", ["human", "nature"]),
        ("the/ human/N and/ nature/N", ["human", "nature"]),
        ("human/N red/ nature/N of/ art/N red/ thing/N", ["nature", "thing"]),
        ("the/ red/", []),
        ("art/N of/", ["art"]),
    ],
)
def test_of_nouns_that_nothing_delimits_only_the_last_is_a_concept(
    sentence: str, wanted: list[str]
) -> None:
    found = words(sentence)
    assert [found[i].text for i in concepts(found)] == wanted


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        # What stands before the first boundary or after the last is the first's or the last's.
        ("the/ red/ art/N ./", "art art art art"),
        ("art/N of/ the/ nature/N", "art art nature nature"),
        # The rightmost deterministic delimiter, or with none the rightmost probabilistic one.
        ("art/N of/ the/ in/ red/ nature/N", "art art art art nature nature"),
        ("art/N of/ the/ and/ red/ nature/N", "art art nature nature nature nature"),
        ("art/N and/ of/ the/ nature/N", "art art art nature nature"),
        ("art/N and/ the/ ,/ red/ nature/N", "art art art art nature nature"),
        ("art/N and/ the/ red/ nature/N", "art art nature nature nature"),
        # A noun that is no concept delimits like any other word: "love" can be a verb.
        ("art/N and/ love/N the/ nature/N", "art art art nature nature"),
        ("art/N of/ nature/N ,/ red/ love/N", "art art nature nature love love"),
        ("art/N red/ love/N the/ nature/N", "nature nature nature nature nature"),
    ],
)
def test_a_column_begins_behind_the_strongest_delimiter(sentence: str, wanted: str) -> None:
    assert homes(sentence) == wanted.split()


def test_every_column_holds_its_concept() -> None:
    found = words("art/N of/ the/ nature/N and/ red/ art/N in/ the/ sun/N ./")
    nouns = concepts(found)
    places = columns(found, nouns)
    assert [places[i] for i in nouns] == [0, 1, 2, 3]
    assert places == sorted(places)


def test_no_noun_no_column() -> None:
    assert columns([], []) == []
