"""Sentences to sequences: what is skipped and why, chunks, workers, prompts."""

import itertools
import multiprocessing
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import cast

import pytest

from giaann_p2p.errors import PipelineError, PromptError
from giaann_p2p.model import parse as parse_module
from giaann_p2p.model.parse import Parsed, Parser, Reason, Skips, chunks, parse_chunks
from giaann_p2p.model.rows import Name
from giaann_p2p.model.sequence import Sequences
from giaann_p2p.model.spec import CHUNK, LEXICON_1, ModelSpec
from giaann_p2p.model.text import LONG_SENTENCE, LONG_WORD, Sentence, text_sentences
from giaann_p2p.store.cut_columns import columns_in
from giaann_p2p.store.cuts import MARK
from tests.helpers import DATA, assert_same_sequences, concatenated

GOOD = "The bees of the old garden collect honey from the many flowers in the summer."


def wiki_sentences() -> list[Sentence]:
    return list(text_sentences((DATA / "wiki.txt").read_text(), 20_000))


def joined(parsed: list[Parsed]) -> Sequences:
    return concatenated(part.sequences for part in parsed)


def skips_of(parsed: list[Parsed]) -> Skips:
    skips = Skips()
    for part in parsed:
        skips.update(part.skips)
    return skips


def test_chunks_are_64_sentences() -> None:
    sentences = [Sentence(str(i), i) for i in range(130)]
    cut = list(chunks(iter(sentences)))
    assert CHUNK == 64
    assert [len(chunk) for chunk in cut] == [64, 64, 2]
    assert list(itertools.chain(*cut)) == sentences
    assert list(chunks([])) == []


def test_a_chunk_of_very_long_sentences_ends_early_but_not_below_the_usual_size() -> None:
    long, short = Sentence("x" * 20_000, 1), Sentence("y", 1)
    assert [len(chunk) for chunk in chunks([long] * 200, 4096)] == [64, 64, 64, 8]
    assert [len(chunk) for chunk in chunks([short] * 200, 128)] == [128, 72]
    mixed = [short] * 100 + [long] * 60
    assert [len(chunk) for chunk in chunks(mixed, 4096)] == [153, 7]


def test_each_skip_is_counted_with_its_first_line(parser: Parser) -> None:
    sentences = [
        Sentence("The bees sleep.", 3),
        Sentence(GOOD, 4),
        Sentence("bee " * 81, 5),
        Sentence("The wasps sleep.", 6),
        Sentence(LONG_SENTENCE, 7),
        Sentence(f"The {LONG_WORD} sleep.", 8),
        Sentence(GOOD.replace("old", "o\ufdd5ld"), 9),
        Sentence("And so very " * 6, 10),
        Sentence(f"{LONG_WORD} {LONG_SENTENCE}", 2),
    ]
    (parsed,) = parser.parse([sentences])
    assert parsed.sentences == 9
    assert len(parsed.sequences) == 1
    assert parsed.skips.counts == {
        Reason.TOO_SHORT: 2,
        Reason.TOO_LONG: 3,
        Reason.LONG_WORD: 1,
        Reason.NOT_TEXT: 1,
        Reason.NO_NOUN: 1,
    }
    assert parsed.skips.first_lines == {
        Reason.TOO_SHORT: 3,
        Reason.TOO_LONG: 2,
        Reason.LONG_WORD: 8,
        Reason.NOT_TEXT: 9,
        Reason.NO_NOUN: 10,
    }
    assert parsed.skips.total() == 8


def test_skips_add_up() -> None:
    skips, more = Skips(), Skips()
    skips.add(Reason.TOO_LONG, 5)
    more.add(Reason.TOO_LONG, 3, 2)
    more.add(Reason.NO_NOUN, 9)
    skips.update(more)
    skips.update(Skips())
    assert skips == Skips(
        {Reason.TOO_LONG: 3, Reason.NO_NOUN: 1}, {Reason.TOO_LONG: 3, Reason.NO_NOUN: 9}
    )


@pytest.mark.parametrize("character", ["\0", "\x08", "\x0e", "\x1b", "\x7f", "\x84", "\x9f"])
def test_control_characters_are_read_as_spaces_and_counted(character: str, parser: Parser) -> None:
    cut = GOOD.replace(" ", character, 1)
    (parsed,) = parser.parse([[Sentence(GOOD, 1), Sentence(cut, 7)]])
    assert parsed.skips == Skips({Reason.CLEANED: 1}, {Reason.CLEANED: 7})
    assert parsed.skips.total() == 0
    assert_same_sequences(parsed.sequences[:1], parsed.sequences[1:])
    (skipped,) = parser.parse([[Sentence(f"Bees{character}sleep.", 1)]])
    assert skipped.skips.counts == {Reason.TOO_SHORT: 1}


@pytest.mark.parametrize("character", ["\0", "\ufffd"])
def test_a_few_of_them_are_text_and_many_are_not(character: str, parser: Parser) -> None:
    few, many = GOOD.replace("old", character + "old"), GOOD.replace("e", character)
    (parsed,) = parser.parse([[Sentence(few, 1), Sentence(many, 2)]])
    assert len(parsed.sequences) == 1
    assert parsed.skips.first_lines[Reason.NOT_TEXT] == 2


@pytest.mark.parametrize(
    "character", ["\x0b", "\x1c", "\x85", "\ufdcf", "\ufdf0", "\ufffc", "\ufffd", "é"]
)
def test_other_characters_are_text(character: str, parser: Parser) -> None:
    (parsed,) = parser.parse([[Sentence(GOOD + character, 1)]])
    assert parsed.skips.counts == {}


def test_each_chunk_has_its_own_result(parser: Parser) -> None:
    good, short, no_noun = (
        Sentence(text, 1) for text in (GOOD, "The bees sleep.", "And so very " * 6)
    )
    parsed = parser.parse([[good], [short, no_noun], [], [short, good], [no_noun]])
    assert [part.sentences for part in parsed] == [1, 2, 0, 2, 1]
    assert [len(part.sequences) for part in parsed] == [1, 0, 0, 1, 0]
    assert [part.skips.total() for part in parsed] == [0, 2, 0, 1, 1]
    assert parsed[4].skips.counts == {Reason.NO_NOUN: 1}


def test_a_sentence_is_parsed_the_same_in_any_company(parser: Parser, wiki: Sequences) -> None:
    alone = [parser.parse([[sentence]])[0] for sentence in wiki_sentences()[:20]]
    assert_same_sequences(joined(alone), joined(parser.parse([wiki_sentences()[:20]])))
    several = parser.parse(list(chunks(wiki_sentences())))
    assert_same_sequences(joined(several), wiki)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_several_workers_give_the_same_as_one(
    workers: int, wiki: Sequences, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_module, "_CHUNKS_AT_ONCE", 2)
    cut = list(chunks(wiki_sentences(), 5))
    parsed = list(parse_chunks(iter(cut), ModelSpec(), workers))
    assert len(cut) == 29
    assert [part.sentences for part in parsed] == [len(chunk) for chunk in cut]
    assert_same_sequences(joined(parsed), wiki)
    assert skips_of(parsed) == Skips({Reason.TOO_SHORT: 2}, {Reason.TOO_SHORT: 103})


def test_other_word_lists_are_refused_with_both_digests_and_a_remedy() -> None:
    with pytest.raises(PipelineError) as caught:
        Parser(ModelSpec(lexicon="abcd"))
    message = str(caught.value)
    assert "needs word lists abcd" in message
    assert LEXICON_1 in message
    assert message.endswith("install the release of giaann-p2p that the model was made with")


@pytest.mark.slow
def test_an_error_of_a_worker_arrives() -> None:
    with pytest.raises(PipelineError, match="needs pipeline other"):
        list(parse_chunks([[Sentence(GOOD, 1)]], ModelSpec(pipeline="other"), workers=2))


@pytest.mark.slow
def test_parsing_may_be_given_up_halfway() -> None:
    endless = ([Sentence(GOOD, line)] for line in itertools.count())
    with closing(
        cast(Generator[Parsed, None, None], parse_chunks(endless, ModelSpec(), workers=2))
    ) as stream:
        assert len(next(stream).sequences) == 1
        assert multiprocessing.active_children()
    assert not multiprocessing.active_children()


def test_only_so_much_is_read_ahead() -> None:
    read = 0

    def counted() -> Iterator[list[Sentence]]:
        nonlocal read
        for line in range(1000):
            read += 1
            yield [Sentence("Short.", line)]

    next(parse_chunks(counted(), ModelSpec(), workers=1))
    assert read == 8


def test_a_prompt_is_parsed_whatever_its_length(parser: Parser) -> None:
    (found,) = parser.parse_prompt([Sentence("The bees of the", 1)])
    assert found.text == "The bees of the"
    assert [word.text for word in found.tokens] == ["the", "bees", "of", "the"]
    assert [name for _, name in found.words] == [
        Name("bee", "the"),
        Name("bee", None),
        Name("bee", "of"),
        Name("bee", "the"),
    ]


def test_a_prompt_without_a_noun_has_no_names(parser: Parser) -> None:
    (found,) = parser.parse_prompt([Sentence("Of the.", 1)])
    assert [(word.text, name) for word, name in found.words] == [
        ("of", None),
        ("the", None),
        (".", None),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\0B\0e\0e\0s", "not text"),
        (LONG_WORD, "word too long"),
        (LONG_SENTENCE, "too long"),
        ("Bees " + ")" * 200, "too much punctuation"),
    ],
)
def test_what_cannot_be_read_in_a_prompt_is_refused(parser: Parser, text: str, reason: str) -> None:
    assert parser.parse_prompt([]) == []
    with pytest.raises(PromptError, match=f"cannot be read: {reason}"):
        parser.parse_prompt([Sentence("Bees make honey.", 1), Sentence(text, 1)])


def test_no_text_makes_the_name_of_a_part_of_a_column(parser: Parser) -> None:
    """A part's name is a word, a mark and a number (see `store.cut_columns`)."""
    said = [
        f"The bee{MARK}3 makes honey in the old garden{MARK}{MARK}12 near the house.",
        f"A bee {MARK}3 sees the dog{MARK} 4 and the cat-{MARK}5 beside a tree{MARK}.",
        f"{MARK}1 The dog{MARK}1 eats (bone{MARK}12) and 'cat{MARK}1' sleeps at a.com/{MARK}3 now.",
    ]
    (parsed,) = parser.parse([[Sentence(text, 1) for text in said]])
    prompts = parser.parse_prompt([Sentence(text, 1) for text in said])
    named = [name for one in prompts for _, name in one.words if name is not None]
    texts = {*parsed.sequences.names.values()}
    texts |= {text for name in named for text in (name.concept, name.feature) if text}
    assert {"bee", "dog"} <= texts
    assert any(MARK in text for text in texts)
    assert all(text.isspace() for text in texts if MARK in text)
    assert not columns_in(texts)
