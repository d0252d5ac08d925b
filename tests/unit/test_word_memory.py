"""Words that spaCy takes for each other: what a text reads as does not depend on other texts."""

import pytest
import spacy
from spacy.strings import hash_string

from giaann_p2p.errors import PromptError
from giaann_p2p.model import english
from giaann_p2p.model.columns import Word
from giaann_p2p.model.parse import Parser, Reason
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import Sentence, text_sentences
from giaann_p2p.model.word_memory import PieceByPiece, WordMemory, tokenized
from tests.collisions import colliding

BREWER = "zymurgist"
"""A word that the pipeline does not bring along."""


@pytest.fixture(scope="module")
def parser(spec: ModelSpec) -> Parser:
    return Parser(spec)


@pytest.fixture
def fresh(parser: Parser) -> Parser:
    """Return a parser that has met no word yet."""
    parser._memory._begin()
    return parser


def words(parser: Parser, text: str) -> list[Word]:
    (found,) = parser.parse_prompt([Sentence(text, 1)])
    return found.tokens


def test_there_are_words_with_the_hash_of_another_one() -> None:
    assert colliding(BREWER) != BREWER
    assert hash_string(colliding(BREWER)) == hash_string(BREWER)
    with pytest.raises(SystemError):
        hash_string(colliding(""))


def test_a_confused_text_is_noticed_and_read_alone() -> None:
    memory, one, other = WordMemory(lambda: spacy.blank("en")), BREWER, colliding(BREWER)
    with memory.open() as nlp:
        assert tokenized(f"The {one} brews.", nlp) is not None
        assert tokenized(f"The {other} brews.", nlp) is None
        assert tokenized(f"The {colliding('')} brews.", nlp) is None
    for text in (f"The {other} brews.", f"The {one} brews.", f"The {other} brews."):
        with memory.alone() as nlp:
            doc = tokenized(text, nlp)
            assert doc is not None
            assert doc.text == text
    with memory.alone() as nlp:
        assert tokenized(f"The {one} is a {other}.", nlp) is None
        assert tokenized(f"The {colliding('')} brews.", nlp) is None


def test_a_long_text_is_cut_as_by_spacy_and_its_pieces_only_once() -> None:
    text = "Don't say (so), ``bee's wax '' and  e.g. old wax; I'm off: the bees don't, either. :-)"
    inner, searched = spacy.blank("en").tokenizer, list[str]()
    search = inner.suffix_search
    wanted = [token.text for token in inner(text)]

    def noted(rest: str) -> object:
        searched.append(rest)
        return search(rest)

    inner = spacy.blank("en").tokenizer
    inner.suffix_search = noted
    whole = PieceByPiece(inner)
    for _ in range(2):
        searched.clear()
        assert [token.text for token in whole(text)] == wanted
    assert set(searched) <= {"don't,", "don't"}  # spaCy remembers no piece with an exception
    assert repr(whole).endswith(" pieces>")


HONEST = {
    "The zymurgist brews good beer.": "zymurgist",
    "The Biergartener brews good beer.": "biergartener",  # found when it is made lower case
    "Two braumeisters brew good beer.": "braumeister",  # found when it is made a lemma
    "It's gonna be homebrewings.": "homebrewing",  # where neighbours matter
}
"""Sentences with a word that the pipeline does not bring along."""


@pytest.mark.slow
@pytest.mark.parametrize("first", [False, True], ids=["honest words first", "the others first"])
def test_another_word_spoils_no_word(fresh: Parser, first: bool) -> None:
    wanted = {text: words(fresh, text) for text in HONEST}
    hidden = {
        text: {word.text for word in told} | {word.lemma for word in told}
        for text, told in wanted.items()
    }
    assert all(word in hidden[text] for text, word in HONEST.items())
    others = {
        f"The {colliding(word)} brews good beer.": colliding(word) for word in HONEST.values()
    }
    fresh._memory._begin()
    for text in [*others, *HONEST, *others] if first else [*HONEST, *others, *HONEST]:
        found = words(fresh, text)
        if text in HONEST:
            assert found == wanted[text]
        else:
            assert found[1].text == found[1].lemma == others[text].lower()


def test_a_pipeline_loaded_anew_does_not_go_by_hashes_of_the_one_before(fresh: Parser) -> None:
    for word in ("Zymurgist", colliding("Zymurgist")):  # tagged alike
        fresh._memory._begin()
        assert words(fresh, f"Mr. {word} brews good beer.")[1].text == word.lower()


def test_a_sentence_is_read_alone_by_one_who_remembers_nothing(fresh: Parser) -> None:
    for word in ("Zymurgist", colliding("Zymurgist"), "Zymurgist"):
        assert words(fresh, f"Mr. {word} brews good beer.")[1].text == word.lower()


def test_confused_sentences_are_learned_like_others(fresh: Parser) -> None:
    other = colliding(BREWER)
    lesson = [
        Sentence(
            f"The good old {word} brews good beer for all the people who live in the village.", line
        )
        for line, word in enumerate([BREWER, other, BREWER, other], 1)
    ]
    (together,) = fresh.parse([lesson])
    alone = []
    for sentence in lesson[:2]:
        fresh._memory._begin()
        alone += fresh.parse([[sentence, sentence]])
    assert together.skips.counts == {}
    names = [{*one.sequences.names.values()} for one in alone]
    assert {*together.sequences.names.values()} == names[0] | names[1]
    assert names[0] - names[1] == {BREWER}
    assert names[1] - names[0] == {other.lower()}


def test_a_word_that_nobody_takes_leaves_the_offsets_of_others_alone(fresh: Parser) -> None:
    honest = "The bees make honey in the hive, and honey is good."
    wanted = words(fresh, honest)
    fresh._memory._begin()
    with pytest.raises(PromptError):
        words(fresh, f"The bees make good {colliding('honey')} in the hive.")
    assert words(fresh, honest) == wanted
    assert wanted[-1].end == len(honest)


def test_what_nobody_can_tell_apart_is_no_text_for_anybody(fresh: Parser) -> None:
    texts = [
        f"The {BREWER} and the {colliding(BREWER)} brew good beer.",
        f"The bees make good {colliding('honey')} in the hive.",  # a word of the pipeline's own
        f"The bees make good {colliding('')} in the hive.",
    ]
    for text in texts:
        with pytest.raises(PromptError, match=f"cannot be read: {Reason.NOT_TEXT}"):
            words(fresh, text)
    lesson = [Sentence(text, line) for line, text in enumerate(texts, 1)]
    (parsed,) = fresh.parse([lesson])
    assert parsed.skips.counts == {Reason.NOT_TEXT: 3}
    assert len(parsed.sequences) == 0


def test_another_word_moves_no_end_of_a_sentence() -> None:
    """The words differ in length: what follows would be cut elsewhere."""
    english.tokenizer()._begin()
    bad, good = f"A {colliding(BREWER)} brews. All drink.", f"A {BREWER} brews. All drink."
    for text in (bad, good, bad):
        assert [s.text for s in text_sentences(text, 1000)] == text.replace(". ", ".|").split("|")
    zero = f"A {colliding('')} brews. All drink."
    assert [s.text for s in text_sentences(zero, 1000)] == [zero]
