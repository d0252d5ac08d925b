"""Hostile texts: each is learned, or skipped and counted, or refused with file and line."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from giaann_p2p.errors import TextError
from giaann_p2p.model.learn import learn
from giaann_p2p.model.parse import Parser, Reason, Skips, chunks, max_chars
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import BLOCK, document_sentences, text_sentences

MEGABYTES_5 = 5_000_000
GOOD = "The bees of the old garden collect honey from the many flowers in the summer."


class Outcome(NamedTuple):
    """What came of learning a text: sequences, sentences skipped, where each reason came first."""

    learned: int
    skipped: dict[Reason, int]
    lines: dict[Reason, int]


Learner = Callable[[bytes | str], Outcome]


@pytest.fixture(scope="module")
def learned(parser: Parser) -> Learner:
    spec = ModelSpec()

    def run(text: bytes | str) -> Outcome:
        data = text.encode() if isinstance(text, str) else text
        pieces = (data[at : at + BLOCK] for at in range(0, len(data), BLOCK))  # as files are read
        sentences = document_sentences(pieces, "some.txt", max_chars(spec))
        learned, count, skips = 0, 0, Skips()
        for chunk in chunks(sentences):
            (parsed,) = parser.parse([chunk])
            assert learn(parsed.sequences, spec).count.sum() == len(parsed.sequences.concept)
            learned += len(parsed.sequences)
            count += parsed.sentences
            skips.update(parsed.skips)
        assert learned + skips.total() == count
        return Outcome(learned, skips.counts, skips.first_lines)

    return run


def skipped(reason: Reason, line: int = 1, learned: int = 0) -> Outcome:
    return Outcome(learned, {reason: 1}, {reason: line})


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n", "\r\n\r\n", "\t \x0b\x0c\u2028\xa0", " " * MEGABYTES_5, "\n" * MEGABYTES_5],
    ids=["empty", "space", "newline", "crlf", "exotic", "5 MB of spaces", "5 MB of newlines"],
)
def test_a_text_of_nothing_has_no_sentence(text: str, learned: Learner) -> None:
    assert learned(text) == Outcome(0, {}, {})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("🐝🐝 🐝", Reason.TOO_SHORT, id="emoji"),
        pytest.param("🐝" * 600, Reason.PUNCTUATION, id="600 emoji"),
        pytest.param("🐝" * MEGABYTES_5, Reason.LONG_WORD, id="20 MB of emoji"),
        pytest.param("x" * MEGABYTES_5, Reason.LONG_WORD, id="5 MB of x"),
        pytest.param("(" * MEGABYTES_5, Reason.LONG_WORD, id="5 MB of ("),
        pytest.param("." * MEGABYTES_5, Reason.LONG_WORD, id="5 MB of ."),
        pytest.param("Oh" + " (" * (MEGABYTES_5 // 2), Reason.TOO_LONG, id="5 MB of ( apart"),
        pytest.param("bees " * (MEGABYTES_5 // 5), Reason.TOO_LONG, id="5 MB of words"),
        pytest.param("bees\n" * (MEGABYTES_5 // 5), Reason.TOO_LONG, id="5 MB of lines"),
        pytest.param("bee " * 10_000, Reason.TOO_LONG, id="10,000 bees"),
        pytest.param("\0".join(GOOD), Reason.NOT_TEXT, id="NUL"),
        pytest.param(GOOD[:-1] + "\ufdd5.", Reason.NOT_TEXT, id="noncharacter"),
        pytest.param(GOOD[:-1] + "\ufffd" * 20 + ".", Reason.NOT_TEXT, id="replacements"),
        pytest.param("And so very " * 6, Reason.NO_NOUN, id="no noun"),
    ],
)
def test_what_is_no_sentence_to_learn_from_is_counted(
    text: str, reason: Reason, learned: Learner
) -> None:
    assert learned(text) == skipped(reason)
    # The same, between sentences that are learned, on the third line.
    assert learned(f"{GOOD}\n{GOOD}\n{text}. ") == skipped(reason, line=3, learned=2)


def test_a_sentence_that_begins_within_a_word_and_never_ends_is_counted(learned: Learner) -> None:
    text = 'Make honey."?Bees ' + "bees\n" * (MEGABYTES_5 // 5)
    first = {Reason.TOO_SHORT: 1, Reason.TOO_LONG: 1}
    assert learned(text) == Outcome(0, first, first)


def test_a_long_line_of_short_sentences_is_all_counted(learned: Learner) -> None:
    assert learned("bee. " * 10_000) == Outcome(
        0, {Reason.TOO_SHORT: 10_000}, {Reason.TOO_SHORT: 1}
    )


@pytest.mark.parametrize(
    "text",
    [
        "🐝 " * 20,
        "bee " * 80,
        "bee " * 13,
        "The * sign of the * book is a * star in the * sky of the * night.",
        "הכלב רץ מעל השדה הגדול וקופץ מעל הנהר בבוקר עם החתול והילד והאישה.",
        "\u202eThe bees of the old garden collect honey from the flowers in the summer\u202c.",
        "\ufeff" + GOOD,
        GOOD.replace(" ", "  "),
        GOOD.replace(" ", "\r\n"),
        GOOD.replace(" ", "\r"),
        GOOD.replace(" ", "\u2028"),
        GOOD.replace("bees", "b\u0301e\u0308es"),
        GOOD.replace("bees", "x" * 1000),
    ],
)
def test_what_is_strange_but_a_sentence_is_learned(text: str, learned: Learner) -> None:
    assert learned(text) == Outcome(1, {}, {})


@pytest.mark.parametrize(
    ("extra", "outcome"),
    [
        (-1, Outcome(1, {}, {})),
        (0, skipped(Reason.TOO_SHORT)),
    ],
)
def test_the_shortest_sentence_has_one_token_more_than_the_seed(
    extra: int, outcome: Outcome, learned: Learner
) -> None:
    assert learned("bee " * (12 - extra)) == outcome
    assert learned("bee " * (80 + 1 + extra)).learned == (extra == -1)


@pytest.mark.parametrize("broken", [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xc0\x80"])
def test_bytes_that_are_not_utf_8_cost_no_sentence(broken: bytes, learned: Learner) -> None:
    good = GOOD.encode()
    text = good + b"\n" + good.replace(b"bees", b"bees" + broken) + b"\n" + good
    assert learned(text) == Outcome(3, {}, {})


def test_a_character_cut_off_at_the_very_end(learned: Learner) -> None:
    assert learned(GOOD.encode() + b"\n\xe2\x82") == skipped(Reason.NOT_TEXT, line=2, learned=1)


def test_control_characters_cost_no_sentence_and_are_counted(learned: Learner) -> None:
    found = learned(f"{GOOD}\nThe\x1b[0m{GOOD[3:]}")
    assert found == Outcome(2, {Reason.CLEANED: 1}, {Reason.CLEANED: 2})


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_another_encoding_is_refused_with_file_line_and_remedy(
    encoding: str, learned: Learner
) -> None:
    name = encoding[:6].upper()
    with pytest.raises(TextError) as caught:
        learned(("\ufeff" + GOOD).encode(encoding))
    assert str(caught.value) == (
        f"some.txt:1: the text is {name}, not UTF-8; convert it first: iconv -f {name} -t UTF-8"
    )


def test_another_encoding_without_a_mark_is_skipped(learned: Learner) -> None:
    assert learned(GOOD.encode("utf-16-le")) == skipped(Reason.NOT_TEXT)


@pytest.mark.parametrize("surrogate", [0xD800, 0xDC80, 0xDFFF])
def test_a_lone_surrogate_in_a_string_costs_no_sentence(surrogate: int, parser: Parser) -> None:
    text = f"{GOOD}\n{chr(surrogate)} {GOOD}\n{GOOD}"
    sentences = list(text_sentences(text, max_chars(ModelSpec())))
    (parsed,) = parser.parse([sentences])
    assert len(parsed.sequences) == 3
    assert parsed.skips.counts == {}


def test_lines_are_right_behind_a_sentence_that_was_too_long(learned: Learner) -> None:
    text = f"{GOOD}\n" + "bees\n" * 20_000 + f"sleep.\nThe bees sleep.\n{GOOD}"
    assert learned(text) == Outcome(
        2,
        {Reason.TOO_LONG: 1, Reason.TOO_SHORT: 1},
        {Reason.TOO_LONG: 2, Reason.TOO_SHORT: 20_003},
    )
