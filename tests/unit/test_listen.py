"""Reading a prompt: the parse and memory, and who is asked when."""

from collections.abc import Sequence

import pytest

from giaann_p2p.model import listen as listening
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.delta import EMPTY
from giaann_p2p.model.evaluate import names_of
from giaann_p2p.model.generate import Mind
from giaann_p2p.model.learn import learn
from giaann_p2p.model.listen import Heard, listen
from giaann_p2p.model.manner import AUTO, Timing
from giaann_p2p.model.parse import Parser, max_chars
from giaann_p2p.model.rows import (
    Answer,
    DeltaRows,
    End,
    Name,
    Question,
    Rows,
    advanced,
    done,
    run,
)
from giaann_p2p.model.text import text_sentences
from tests.helpers import SMALL, built, sequences_of

PARTY = "The workers of the old bee garden party collected honey in the summer."
CITY = "The queen bee of the old city walks in the red well-known garden."
SPECIAL = ["The workers of the hill slept in the summer."] * 2 + [
    "The workers of the garden slept in the winter."
]


@pytest.fixture(scope="module")
def small() -> Parser:
    return Parser(SMALL)


@pytest.fixture(scope="module")
def rows(small: Parser) -> DeltaRows:
    return learned([PARTY, CITY], small)


def learned(texts: list[str], parser: Parser) -> DeltaRows:
    return DeltaRows(learn(sequences_of(" ".join(texts), parser), SMALL))


def heard(prompt: str, rows: Rows, parser: Parser) -> Heard:
    sentences = parser.parse_prompt(list(text_sentences(prompt, max_chars(SMALL))))
    mind = Mind(Batch(SMALL))
    found = run(listen(mind, sentences), rows)
    assert len(mind) == len(found.names)
    return found


def names(text: str, parser: Parser) -> list[Name]:
    return names_of(sequences_of(text, parser))


def parsed(prompt: str, parser: Parser) -> list[Name]:
    """Return what the parse alone says."""
    sentences = parser.parse_prompt(list(text_sentences(prompt, max_chars(SMALL))))
    return [name for sentence in sentences for _, name in sentence.words if name]


@pytest.mark.parametrize("text", [PARTY, CITY])
def test_a_whole_sentence_is_heard_as_it_was_learned(text: str, rows: Rows, small: Parser) -> None:
    found = heard(text, rows, small)
    assert found == Heard(names(text, small), [], "")


@pytest.mark.parametrize(
    ("prompt", "count", "rest"),
    [
        ("The workers of", 3, ""),
        ("The workers of the", 4, ""),
        ("The workers of the old", 5, ""),
        ("The workers of the old bee", 6, "_garden_party"),
        ("The workers of the old bee garden", 6, "_party"),
        ("The workers of the old bee garden party", 6, ""),
        ("the workers of the old bees", 6, "_garden_party"),
    ],
)
def test_the_tail_is_what_memory_expects(
    prompt: str, count: int, rest: str, rows: Rows, small: Parser
) -> None:
    assert heard(prompt, rows, small) == Heard(names(PARTY, small)[:count], [], rest)


def works(text: str, timings: Sequence[Timing], rows: Rows, parser: Parser) -> list[int]:
    """Hear a prompt; return how many words were heard at each time that a state was needed."""
    sentences = parser.parse_prompt(list(text_sentences(text, max_chars(SMALL))))
    mind, found = Mind(Batch(SMALL), timings), list[int]()
    steps = listen(mind, sentences)
    at = advanced(steps, None)
    while not isinstance(at, End):
        answer: Answer = []
        if isinstance(at, Question):
            answer = rows.read(at)
        else:
            assert len(at) == 1
            found.append(len(mind))
            done(at)
        at = advanced(steps, answer)
    return found


def test_no_state_is_needed_where_parse_and_memory_agree(rows: DeltaRows, small: Parser) -> None:
    prompt = "The workers of the old bee garden party collected honey in the"
    assert works(prompt, AUTO, rows, small) == [9]
    assert works(prompt, [Timing.EXACT], rows, small) == list(range(1, 10))


def test_no_state_is_needed_where_nothing_that_is_written_ever_came(
    rows: DeltaRows, small: Parser
) -> None:
    prompt = "The workers quick wide tall young deep long soft bold sharp"
    assert works(prompt, AUTO, rows, small) == []
    assert works(prompt, [Timing.EXACT], rows, small) == [1]  # for "workers"


@pytest.mark.parametrize("end", [" ", "\n", "  ", "\n\n", " \t"])
def test_white_space_at_the_end_says_nothing(end: str, rows: Rows, small: Parser) -> None:
    prompt = "The workers of the old bee"
    assert heard(prompt + end, rows, small) == heard(prompt, rows, small)


@pytest.mark.parametrize("prompt", ["The workers of the old bee gar", "The workers of the old be"])
def test_a_part_of_a_word_is_not_the_word(prompt: str, rows: Rows, small: Parser) -> None:
    found = heard(prompt, rows, small)
    assert found.rest == ""
    assert found.names[:5] == names(PARTY, small)[:5]
    assert found.names[5] != names(PARTY, small)[5]
    assert found.unknown


def test_an_inflected_word_is_known_by_its_lemma(rows: Rows, small: Parser) -> None:
    found = heard("The workers of the old bee garden parties collected", rows, small)
    assert found == Heard(names(PARTY, small)[:7], [], "")


def test_a_dash_that_was_merged_as_a_noun_is_spelled_as_a_dash(small: Parser) -> None:
    rows = DeltaRows(learn(built("bee/N of/ anti_-_capitalism/N flies/"), SMALL))
    anti = "anti_-_capitalism"
    assert heard("Bees of anti-capitalism", rows, small).names[2:] == [Name(anti, None)]
    assert heard("Bees of anti", rows, small).rest == "_-_capitalism"


def test_a_word_that_memory_knows_uninflected_is_known_by_its_lemma(small: Parser) -> None:
    text = "The old queen bees never walk in the garden."
    found = heard("The old queen bee never walks in", learned([text], small), small)
    assert found == Heard(names(text, small)[:6], [], "")


def test_any_dash_spells_a_dash(rows: Rows, small: Parser) -> None:
    prompt = CITY.replace("-", "–")[: -len(" garden.")]
    assert heard(prompt, rows, small) == Heard(names(CITY, small)[:-2], [], "")


def test_letters_that_have_no_single_lower_case_keep_their_place(small: Parser) -> None:
    rows = learned([PARTY.replace("workers", "İİİ workers")], small)
    found = heard("The İİİ workers of the old bee", rows, small)
    assert (found.rest, found.unknown) == ("_garden_party", [])


@pytest.mark.parametrize(
    ("prompt", "unknown"),
    [
        ("A dog sleeps under the table.", ["dog", "table"]),
        ("The dog", ["dog"]),
        ("Zorp, of the zorp: it zorps", ["zorp"]),
    ],
)
def test_what_was_never_learned_is_heard_as_parsed(
    prompt: str, unknown: list[str], rows: Rows, small: Parser
) -> None:
    found = heard(prompt, rows, small)
    assert found.names == parsed(prompt, small)
    assert found.unknown == unknown
    assert found.rest == ""


def test_without_memory_the_parse_holds(small: Parser) -> None:
    for prompt in (PARTY, CITY, "The workers of the old bee"):
        found = heard(prompt, DeltaRows(EMPTY), small)
        assert found.names == parsed(prompt, small)
        assert found.unknown


def test_only_the_unknown_is_told_as_such(rows: Rows, small: Parser) -> None:
    found = heard("The workers of the zorp", rows, small)
    assert found.names[:4] == names(PARTY, small)[:4]
    assert found.unknown == ["zorp"]


def test_a_word_that_is_new_to_a_known_column_is_told_with_it(rows: Rows, small: Parser) -> None:
    found = heard("My workers of my workers", rows, small)
    assert found.unknown == ["worker/my"]


@pytest.mark.parametrize("prompt", ["", "   ", "Of the.", "And? Or!", "..."])
def test_a_prompt_without_a_noun_says_nothing(prompt: str, rows: Rows, small: Parser) -> None:
    assert heard(prompt, rows, small) == Heard()


def test_a_sentence_without_a_noun_is_read_by_memory(rows: Rows, small: Parser) -> None:
    assert heard(f"Of the. {PARTY}", rows, small).names == names(PARTY, small)


def test_several_sentences_are_heard_one_after_another(rows: Rows, small: Parser) -> None:
    found = heard(f"{CITY} The workers of the old bee", rows, small)
    assert found.names == names(CITY, small) + names(PARTY, small)[:6]
    assert found.rest == "_garden_party"


def test_up_to_the_last_delimiter_the_parse_knows_the_column(small: Parser) -> None:
    rows = learned(SPECIAL, small)
    garden = names(SPECIAL[2], small)[:6]
    assert heard("The workers of the garden slept", rows, small).names == garden
    # Behind it, nothing tells yet of what "the" is; memory knows the hill better.
    assert heard("The workers of the", rows, small).names == names(SPECIAL[0], small)[:4]


def test_a_noun_at_the_end_delimits_nothing(small: Parser) -> None:
    # "garden" can be a verb, but here it is a noun; what memory knows best begins with it.
    weak, strong = "The workers of the garden slept.", "The workers of the garden party slept."
    rows = learned([weak, strong, strong], small)
    found = heard("The workers of the garden", rows, small)
    assert found == Heard(names(strong, small)[:5], [], "_party")
    assert heard("The workers of the garden slept", rows, small).names == names(weak, small)[:6]


def test_of_two_ways_to_go_on_the_stronger_is_heard(small: Parser) -> None:
    weak, strong = "The workers of the bee hill slept.", "The workers of the bee city slept."
    rows = learned([weak, strong, strong], small)
    assert heard("The workers of the bee", rows, small).rest == "_city"


def test_where_memory_hears_less_than_the_parse_the_rest_is_a_word_of_its_own(
    small: Parser,
) -> None:
    rows = learned(["The workers walked to the old bee."], small)
    found = heard("The workers walked to the old bee garden party", rows, small)
    assert found.names[:7] == names("The workers walked to the old bee.", small)[:7]
    assert [name.word for name in found.names[7:]] == ["garden", "party"]
    assert found.unknown == ["bee_garden_party/garden", "bee_garden_party/party"]


class Lost:
    """Rows of which one was lost."""

    def __init__(self, rows: Rows, name: Name) -> None:
        self.rows = rows
        self.neuron = name.neuron

    def read(self, question: Question) -> Answer:
        rows = self.rows.read(question)
        pairs = zip(question.neurons, rows, strict=True)
        return [None if neuron == self.neuron else row for neuron, row in pairs]


class Asked:
    """Rows that count the names that they were asked for."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.names = 0

    def read(self, question: Question) -> Answer:
        self.names += question.names_only * len(question.neurons)
        return self.rows.read(question)


def test_only_near_the_end_names_are_asked_for(small: Parser) -> None:
    many = [f"The old w{i} bee of the garden party walks in the summer." for i in range(9)]
    rows = Asked(learned(many, small))
    found = heard("The old w5 bee of the garden party walks in the summer.", rows, small)
    assert (found.names, found.unknown) == (names(many[5], small), [])
    assert rows.names == 0
    assert heard("The old w5 bee of the garden", rows, small).rest == "_party"
    assert 0 < rows.names < 9


def test_of_very_many_words_only_the_strongest_are_asked_for_their_names(
    small: Parser, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak, strong = "The workers of bee city slept.", "The workers of queens slept."
    rows = learned([weak, strong, strong], small)
    assert heard("The workers of bee", rows, small).rest == "_city"
    monkeypatch.setattr(listening, "_MOST_NAMES", 1)
    assert heard("The workers of bee", rows, small).rest == ""


def test_a_word_whose_column_was_lost_is_not_remembered(small: Parser) -> None:
    rows = learned(SPECIAL, small)
    lost = names(SPECIAL[0], small)[3]
    assert (
        heard("The workers of the", Lost(rows, lost), small).names[3]
        == (names(SPECIAL[2], small)[3])
    )
