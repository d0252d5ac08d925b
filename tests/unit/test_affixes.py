"""Punctuation that would take the tokenizer long is found early, and no honest sentence is hit."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from giaann_p2p.model import english, parse, text
from giaann_p2p.model.affixes import MOST_CUTS, MOST_READ, Tokenizer, is_costly, spaced
from giaann_p2p.model.parse import Parser, Reason
from giaann_p2p.model.text import MAX_WORD, Sentence, text_sentences
from giaann_p2p.model.word_memory import tokenized
from tests.helpers import DATA

GOOD = "The bees of the old garden collect honey from the many flowers in the summer."
SLOW = {
    "brackets": "(" * 999,
    "quotes": "'" * 999,
    "smileys": ":)" * 499,
    "behind a word": "bees" + ")" * 990,
    "before a word": "(" * 990 + "bees",
    "currencies": "US$" * 333,
    "genitives": "'s" * 499,
    "equals signs": "=" * 999,
    "symbols": "🐝" * 999,
    "dashes": "—" * 999,
}
MARKS = [*"(){}[]<>'\"`´“”‘’.,;:!?…-–—_=+*/\\|#&%$€§°~^@🐝", "'s", "US$", "10km", ":)", "x"]


Cut = re.Match[str] | None


def tokenizer() -> Tokenizer:
    with english.tokenizer().open() as nlp:
        return cast(Tokenizer, nlp.tokenizer)


def counted(reads: list[int]) -> SimpleNamespace:
    """Return a tokenizer that notes how many characters its patterns are given."""

    def noting(search: Callable[[str], Cut]) -> Callable[[str], Cut]:
        def noted(word: str) -> Cut:
            reads.append(len(word))
            return search(word)

        return noted

    real = tokenizer()
    return SimpleNamespace(
        prefix_search=noting(real.prefix_search), suffix_search=noting(real.suffix_search)
    )


@pytest.mark.parametrize("words", [1, 4, 20])
@pytest.mark.parametrize("word", SLOW.values(), ids=SLOW)
def test_slow_sentences_are_skipped_before_the_tokenizer_gets_them(
    word: str, words: int, parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []
    monkeypatch.setattr(
        parse, "tokenized", lambda text, nlp: given.append(text) or tokenized(text, nlp)
    )
    slow = " ".join([word] * words)
    (parsed,) = parser.parse([[Sentence(GOOD, 1), Sentence(slow, 2), Sentence(GOOD, 3)]])
    assert parsed.skips.counts == {Reason.PUNCTUATION: 1}
    assert parsed.skips.first_lines == {Reason.PUNCTUATION: 2}
    assert len(parsed.sequences) == 2
    assert given == [GOOD, GOOD]


def test_a_sentence_of_many_words_is_too_long_before_the_tokenizer_gets_it(
    parser: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse, "tokenized", None)
    (parsed,) = parser.parse([[Sentence("((((((((((((((((((( " * 1000, 1)]])
    assert parsed.skips.counts == {Reason.TOO_LONG: 1}


def test_a_word_that_no_honest_client_sends_is_too_long(parser: Parser) -> None:
    words = [Sentence(f"{GOOD} {'x' * length}", length) for length in (MAX_WORD, MAX_WORD + 1)]
    (parsed,) = parser.parse([words])
    assert parsed.skips.first_lines == {Reason.LONG_WORD: MAX_WORD + 1}
    assert len(parsed.sequences) == 1


@pytest.mark.parametrize("word", SLOW.values(), ids=SLOW)
def test_finding_out_costs_little(word: str) -> None:
    reads: list[int] = []
    sentence = " ".join([word] * 20)
    assert is_costly(sentence, counted(reads))
    assert sum(reads) <= 3 * MOST_READ


@pytest.mark.parametrize("word", SLOW.values(), ids=SLOW)
def test_the_search_for_sentences_gets_no_slow_word(
    word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, reads = [], list[int]()

    def noting(whole: str, _: Tokenizer) -> str:
        given.append(spaced(whole, counted(reads)))
        return given[-1]

    monkeypatch.setattr(text, "spaced", noting)
    document = " ".join([word] * 20)
    assert list(text_sentences(document, 20_480)) == [Sentence(document, 1)]
    assert sum(reads) <= 5 * MOST_CUTS * len(document)
    assert len(given[-1]) == len(document)
    assert all(_cuts(short, tokenizer()) <= 2 * MOST_CUTS for short in given[-1].split())


@given(st.lists(st.tuples(st.sampled_from(MARKS), st.integers(1, 300)), max_size=6))
def test_what_is_not_costly_has_the_tokenizer_read_no_more_than_is_said(
    runs: list[tuple[str, int]],
) -> None:
    sentence = "".join(mark * count for mark, count in runs)[:MAX_WORD]
    reads: list[int] = []
    if not is_costly(sentence, tokenizer()):
        _cuts(sentence, counted(reads))
        assert sum(reads) <= 2 * (MOST_READ + 2 * len(sentence))


def _cuts(word: str, tokenizer: Tokenizer) -> int:
    """Return how often spaCy looks at a word until there is nothing to cut off."""
    prefix = tokenizer.prefix_search(word)
    rest = word[prefix.end() :] if prefix else word
    suffix = tokenizer.suffix_search(rest)
    rest = rest[: suffix.start()] if suffix else rest
    return 1 + (_cuts(rest, tokenizer) if rest and rest != word else 0)


@pytest.mark.parametrize(
    "sentence",
    [
        GOOD,
        "",
        " ",
        "=" * 120,
        f"Bees {'-' * 999} make {'.' * 999} honey.",
        "(see <https://example.org/" + "a/b?c=%20&" * 90 + ">), they say.",
        "蜂" * 999 + "。",
        '"(["Bees"])!" ' * 60,
        "🐝 " * 2000,
    ],
)
def test_what_people_write_is_not_costly(sentence: str) -> None:
    assert not is_costly(sentence, tokenizer())


def test_a_text_that_people_wrote_stays_as_it_is() -> None:
    wiki = (DATA / "wiki.txt").read_text()
    assert spaced(wiki, tokenizer()) == wiki


@pytest.mark.slow
@pytest.mark.parametrize("mark", MARKS)
def test_rulers_of_any_mark_change_no_sentence(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rulers = [(mark * length)[:length] for length in (10, 17, 18, 26, 27, 80, 300)]
    documents = [
        f"Bees hum. {ruler} Bees hum! {ruler}\nBees{ruler} Bees. {ruler}hum. {ruler}"
        for ruler in rulers
    ]
    found = [list(text_sentences(document, 20_000)) for document in documents]
    monkeypatch.setattr(text, "spaced", lambda whole, _: whole)
    assert found == [list(text_sentences(document, 20_000)) for document in documents]
