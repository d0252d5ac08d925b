"""Which part of speech a token gets, and to which column it belongs."""

import pytest

from giaann_p2p.model.subwords.columns import (
    Delimiter,
    columns,
    concepts,
    delimiters,
    named_until,
)
from giaann_p2p.model.subwords.tags import PartOfSpeech, TaggedWord
from giaann_p2p.model.subwords.tokens import Token, tokens_of


def tagged(text: str, *words: str) -> list[Token]:
    """Cut a text into tokens at `|`, given its words as `text/POS`, in order."""
    pieces = text.split("|")
    whole, found, at = "".join(pieces), [], 0
    for word in words:
        form, _, pos = word.rpartition("/")
        at = whole.index(form, at)
        found.append(TaggedWord(form, at, PartOfSpeech(pos, pos.lower())))
        at += len(form)
    lengths = [len(piece.encode()) for piece in pieces]
    return tokens_of(whole, found, range(len(pieces)), pieces, lengths)


def parts(text: str, *words: str) -> list[str]:
    return [token.part.pos for token in tagged(text, *words)]


@pytest.mark.parametrize(
    ("text", "words", "wanted"),
    [
        ("An|arch|ism| is", ["Anarchism/NOUN", "is/AUX"], ["NOUN", "NOUN", "NOUN", "AUX"]),
        ("do|n't| go", ["do/AUX", "n't/PART", "go/VERB"], ["AUX", "PART", "VERB"]),
        ("a|bcd", ["ab/X", "cd/Y"], ["X", "Y"]),
        ("ab|cd", ["abcd/X"], ["X", "X"]),
        ("abcd", ["ab/X", "cd/Y"], ["X"]),
        ("a| | b", ["a/X", "b/Y"], ["X", "SPACE", "Y"]),
        ("é|bc", ["éb/X", "c/Y"], ["X", "X"]),
        ("a|. ,", ["a/X", "./P", ",/Q"], ["X", "P"]),
    ],
)
def test_a_token_takes_the_part_of_the_word_it_shares_most_bytes_with(
    text: str, words: list[str], wanted: list[str]
) -> None:
    assert parts(text, *words) == wanted


@pytest.mark.parametrize(
    ("text", "pos"),
    [
        ("  ", "SPACE"),
        (".,", "PUNCT"),
        ("$", "PUNCT"),
        ("12", "NUM"),
        ("1,200.5", "NUM"),
        (" 12", "X"),
        ("12.", "X"),
        (" (", "X"),
        (" €+", "SYM"),
        ("word", "X"),
    ],
)
def test_a_token_may_tell_its_part_by_itself(text: str, pos: str) -> None:
    word = TaggedWord(text, 0, PartOfSpeech("X", "x"))
    (token,) = tokens_of(text, [word], [7], [text], [len(text)])
    assert token == Token(7, text, PartOfSpeech(pos, "." if pos == "PUNCT" else "x"))


def test_a_part_of_a_character_takes_the_part_of_its_word() -> None:
    word = TaggedWord("🐝", 0, PartOfSpeech("SYM", "x"))
    found = tokens_of("🐝", [word], [1, 2], [None, None], [3, 1])
    assert [token.part.pos for token in found] == ["SYM", "SYM"]
    assert not found[0].is_noun


def sentence(text: str) -> list[Token]:
    """Read tokens as "the/DET cat/NOUN ./PUNCT"; `_` begins a text with a space."""
    found = []
    for number, word in enumerate(text.split()):
        form, _, pos = word.rpartition("/")
        found.append(Token(number, form.replace("_", " "), PartOfSpeech(pos, pos)))
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("bee/NOUN", "0"),
        ("a/DET bee/NOUN hive/NOUN _is/AUX red/ADJ", "00000"),
        # A deterministic delimiter ends a column, the rightmost one, and before any other.
        ("bee/NOUN ,/PUNCT in/ADP a/DET of/ADP the/DET ,/PUNCT hive/NOUN", "00000111"),
        ("bee/NOUN 's/POS hive/NOUN ;/PUNCT", "0011"),
        # A candidate only if it is the first between the nearest nouns.
        ("bee/NOUN red/ADJ ,/PUNCT the/DET is/AUX hive/NOUN", "000111"),
        # No delimiter: the second column begins with its concept.
        ("bee/NOUN _is/AUX the/DET hive/NOUN red/ADJ", "00011"),
        ("bee/NOUN red/ADJ hive/NOUN nest/NOUN the/DET wax/PROPN", "001112"),
    ],
)
def test_columns(text: str, wanted: str) -> None:
    tokens = sentence(text)
    nouns = concepts(tokens)
    found = columns(nouns, delimiters(tokens, nouns))
    assert "".join(map(str, found)) == wanted


def test_delimiters() -> None:
    tokens = sentence(
        ",/PUNCT go/VERB bee/NOUN ,/PUNCT and/CCONJ hive/NOUN (/PUNCT in/ADP wax/NOUN ,/PUNCT"
    )
    none, candidate = Delimiter.NONE, Delimiter.CANDIDATE
    likely, certain = Delimiter.PROBABILISTIC, Delimiter.DETERMINISTIC
    assert delimiters(tokens, concepts(tokens)) == [
        *(candidate, certain, none, likely, candidate),
        *(none, candidate, certain, none, candidate),
    ]


@pytest.mark.parametrize(
    ("text", "until"),
    [("a/DET bee/NOUN red/ADJ", 3), ("bee/NOUN hive/NOUN ,/PUNCT the/DET ./PUNCT", 3)],
)
def test_a_last_column_is_sure_up_to_its_first_delimiter(text: str, until: int) -> None:
    tokens = sentence(text)
    nouns = concepts(tokens)
    assert named_until(nouns, delimiters(tokens, nouns)) == until


def test_without_a_noun_there_is_no_concept() -> None:
    assert concepts(sentence("go/VERB ./PUNCT")) == []
