"""Parsing texts: what is cropped, skipped and counted."""

import pytest

from giaann_p2p.errors import PromptError
from giaann_p2p.model import word_memory
from giaann_p2p.model.parse import Reason
from giaann_p2p.model.subwords import parse as module
from giaann_p2p.model.subwords.parse import ParsedTexts, TextParser, parse_text_chunks
from giaann_p2p.model.subwords.spec import subword_spec
from giaann_p2p.model.text import LONG_SENTENCE, Sentence
from tests.collisions import colliding

SPEC = subword_spec()
BEES = "Bees make honey from the nectar that they collect from flowers."


@pytest.fixture(scope="module")
def parser() -> TextParser:
    return TextParser(SPEC)


def parsed(parser: TextParser, *texts: str) -> ParsedTexts:
    (found,) = parser.parse([[Sentence(text, line) for line, text in enumerate(texts, 1)]])
    return found


def text_of(parser: TextParser, found: ParsedTexts) -> str:
    return parser.tokeniser.decode(found.sequences.token.tolist())


def test_a_text_becomes_its_tokens(parser: TextParser) -> None:
    found = parsed(parser, BEES)
    assert (found.sentences, len(found.sequences)) == (1, 1)
    assert text_of(parser, found) == BEES
    assert not found.skips.counts


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Bees make honey in the hive.", Reason.TOO_SHORT),
        ("They go and they come and they go and they come again.", Reason.NO_NOUN),
        (LONG_SENTENCE, Reason.TOO_LONG),
        (f"{BEES} " * 3 + "é" * 900 + " " + "é" * 900, Reason.TOO_LONG),
        (f"{BEES} {'b' * 1001}", Reason.LONG_WORD),
        (f"\ufffe {BEES}", Reason.NOT_TEXT),
        (f"{BEES} {'(' * 500}", Reason.PUNCTUATION),
    ],
)
def test_what_is_unfit_is_skipped_and_counted(
    parser: TextParser, text: str, reason: Reason
) -> None:
    found = parsed(parser, BEES, text)
    assert len(found.sequences) == 1
    assert found.skips.counts == {reason: 1}
    assert found.skips.first_lines == {reason: 2}
    assert found.skips.total() == 1


def test_a_text_of_too_many_words_is_cropped_to_its_first(parser: TextParser) -> None:
    text = "The bees make honey " * 30
    found = parsed(parser, text)
    assert text_of(parser, found) == text[:-1][: len("The bees make honey ") * 20 - 1]
    assert found.skips.counts == {Reason.CROPPED: 1}
    assert found.skips.total() == 0


def test_a_word_with_the_hash_of_another_one_moves_no_crop(parser: TextParser) -> None:
    text = "The bees make honey " * 30
    wanted = text_of(parser, parsed(parser, text))
    parser._memory._begin()
    with pytest.raises(PromptError, match="not text"):
        parser.tokens(f"The bees make good {colliding('honey')} in the hive.")
    assert text_of(parser, parsed(parser, text)) == wanted
    parser._memory._begin()


def test_words_behind_a_crop_do_not_change_what_is_before_it(parser: TextParser) -> None:
    text = "The bees make honey " * 20
    long = parsed(parser, text + "and more of it is made every day in each of the hives. " * 9)
    longer = parsed(parser, text + "and more of it is made every day in each of the hives. " * 99)
    assert long.sequences.token.tolist() == longer.sequences.token.tolist()
    assert long.sequences.home.tolist() == longer.sequences.home.tolist()


def test_a_text_of_too_many_tokens_is_cropped_between_characters(parser: TextParser) -> None:
    for before in range(4):
        text = "The bees" + " so" * before + " make honey for 𒀀𒀁𒀂" + " 𒀀𒀁𒀂𒀃𒀄" * 40 + " now"
        found = parsed(parser, text)
        assert found.skips.counts == {Reason.CROPPED: 1}
        assert 157 <= len(found.sequences.token) <= 160
        assert text.startswith(text_of(parser, found))
        assert "\ufffd" not in text_of(parser, found)


def test_control_characters_are_read_as_spaces_and_nul_is_nothing(parser: TextParser) -> None:
    found = parsed(parser, BEES.replace("nectar", "nec\0tar").replace(" that ", "\x07that "))
    assert text_of(parser, found) == BEES
    assert found.skips.counts == {Reason.CLEANED: 1}


def test_a_text_whose_words_are_confused_is_read_alone(
    parser: TextParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = parsed(parser, BEES)
    monkeypatch.setattr(module, "tokenized", lambda text, nlp: None)
    monkeypatch.setattr(
        TextParser,
        "_alone",
        lambda self, text: next(self._words([word_memory.tokenized(text, self._tagger._nlp)])),
    )
    assert parsed(parser, BEES).sequences.home.tolist() == wanted.sequences.home.tolist()
    assert len(parser.tokens(BEES)) == len(wanted.sequences.token)
    monkeypatch.setattr(TextParser, "_alone", lambda self, text: None)
    assert parsed(parser, BEES).skips.counts == {Reason.NOT_TEXT: 1}
    with pytest.raises(PromptError, match="not text"):
        parser.tokens(BEES)


def test_words_of_a_text_read_alone_are_the_same(parser: TextParser) -> None:
    alone = parser._alone(BEES)
    assert alone is not None
    assert [word.text for word in alone][:3] == ["Bees", "make", "honey"]
    assert {word.part.pos for word in alone if word.text in ("Bees", "honey")} == {"NOUN"}


def test_a_prompt_is_read_as_it_stands(parser: TextParser) -> None:
    assert [token.text for token in parser.tokens("Bees make")] == ["Be", "es", " make"]
    with pytest.raises(PromptError, match="word too long"):
        parser.tokens("b" * 1001)


@pytest.mark.slow
def test_several_processes_parse_the_same_in_order() -> None:
    chunks = [[Sentence(f"{number} {BEES}", number)] for number in range(20)]
    wanted = list(parse_text_chunks(chunks, SPEC))
    found = list(parse_text_chunks(chunks, SPEC, workers=2))
    assert [one.sequences.token.tolist() for one in found] == [
        one.sequences.token.tolist() for one in wanted
    ]
