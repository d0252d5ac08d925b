"""From a prompt to tokens: who speaks, when it ends, which rows are asked for."""

import pytest

from giaann_p2p.errors import UsageError
from giaann_p2p.model import board as boards
from giaann_p2p.model import generate
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.board import ONE
from giaann_p2p.model.delta import EMPTY
from giaann_p2p.model.generate import Choice, Mind, Taken, look_ahead, next_token, read
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import AUTO, Beam, Timing
from giaann_p2p.model.rows import Answer, DeltaRows, Name, Question, Rows, run
from giaann_p2p.model.spec import ModelSpec
from tests.helpers import SMALL, built, row_of

SENTENCES = ["a/ b/ c/ bee/N flies/ to/ red/ hill/N ./ then/ sun/N sets/", "a/ b/ wasp/N"]
ROWS = DeltaRows(learn(built(*SENTENCES), SMALL))
HEARD = [Name("bee", word) for word in ("a", "b", "c", None)]
END = Name("hill", ".")


class Asked:
    """Rows that remember what they were asked for."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.questions: list[Question] = []

    def read(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.rows.read(question)


def mind_with(names: list[Name], timings: tuple[Timing, ...] = AUTO, rows: Rows = ROWS) -> Mind:
    mind = Mind(Batch(SMALL), timings)
    for name in names:
        mind.hear(row_of(rows, name))
    return mind


def best(mind: Mind) -> Choice | None:
    return run(generate.best(mind), ROWS)


def said(mind: Mind, most: int = 20, rows: Rows = ROWS, beam: Beam | None = None) -> list[Taken]:
    tokens: list[Taken] = []
    while len(tokens) < most and (token := run(next_token(mind, beam), rows)) is not None:
        tokens.append(token)
    return tokens


def test_auto_asks_from_the_strictest_to_the_loosest() -> None:
    assert AUTO == (Timing.EXACT, Timing.SEQ, Timing.NONE)


@pytest.mark.parametrize(
    ("unknown_at", "timing"), [(None, Timing.EXACT), (2, Timing.SEQ), (0, Timing.EXACT)]
)
def test_auto_tells_which_timing_spoke(unknown_at: int | None, timing: Timing) -> None:
    names = HEARD[:3]
    if unknown_at is not None:
        names.insert(unknown_at, Name("bee", "zorp"))
    token = run(next_token(mind_with(names)), ROWS)
    assert token is not None
    assert (token.name.word, token.choice.timing, token.name) == ("bee", timing, Name("bee", None))


def test_a_guess_is_told_as_such() -> None:
    token = run(next_token(mind_with([HEARD[2]])), ROWS)
    assert token is not None
    choice = token.choice
    assert (token.name.word, choice.timing, choice.candidates) == ("bee", Timing.NONE, 1)
    assert ONE < choice.score < 2 * ONE


def test_what_was_taken_is_what_was_chosen() -> None:
    mind = mind_with(HEARD)
    choice = best(mind)
    assert choice is not None
    assert choice.score > 3 * ONE
    token = run(next_token(mind), ROWS)
    assert token is not None
    assert token.choice == choice


def test_a_remembered_sentence_is_said_to_its_end() -> None:
    tokens = said(mind_with(HEARD))
    assert " ".join(token.name.word for token in tokens) == "flies to red hill . then sun sets"
    assert {token.choice.timing for token in tokens} == {Timing.EXACT}


def test_behind_the_end_of_a_sentence_auto_does_not_guess() -> None:
    assert best(mind_with([END])) is None
    assert best(mind_with([END], (Timing.SEQ, Timing.NONE))) is None


@pytest.mark.parametrize("timing", [Timing.NONE, Timing.BIASED])
def test_behind_the_end_of_a_sentence_one_timing_goes_on(timing: Timing) -> None:
    choice = best(mind_with([END], (timing,)))
    assert choice is not None
    assert (choice.neuron, choice.timing) == (Name("sun", "then").neuron, timing)


@pytest.mark.parametrize("mark", [".", "?", "!"])
def test_what_ends_a_sentence(mark: str) -> None:
    rows = DeltaRows(learn(built(f"hill/N {mark}/ then/ sun/N", "hill/N ;/ then/ sun/N"), SMALL))
    assert best(mind_with([Name("hill", mark)], rows=rows)) is None
    assert best(mind_with([Name("hill", ";")], rows=rows)) is not None


ENDING = DeltaRows(learn(built("a/ b/ c/ d/ bee/N flies/ ,/", "x/ flies/ ,/ far/ bee/N"), SMALL))
BY_HEART = [Name("bee", word) for word in ("a", "b", "c", "d", None)]


def test_where_a_sentence_that_is_followed_ended_auto_does_not_guess() -> None:
    tokens = said(mind_with(BY_HEART, rows=ENDING), rows=ENDING)
    assert [(token.name.word, token.choice.timing) for token in tokens] == [
        ("flies", Timing.EXACT),
        (",", Timing.EXACT),
    ]
    tokens = said(mind_with(BY_HEART, (Timing.SEQ, Timing.NONE), ENDING), rows=ENDING)
    assert [token.name.word for token in tokens][:3] == ["flies", ",", "far"]


def test_a_word_that_has_ended_a_sentence_does_not_end_others() -> None:
    mind = mind_with([Name("bee", "flies"), Name("bee", ",")], rows=ENDING)
    assert [token.name.word for token in said(mind, 1, ENDING)] == ["far"]
    # Nor does one that came instead of what was expected.
    mind = mind_with(BY_HEART, rows=ENDING)
    assert best(mind) is not None
    mind.hear(row_of(ENDING, Name("bee", ",")))
    assert [token.name.word for token in said(mind, 1, ENDING)] == ["far"]


def test_what_a_mind_forgot_ends_nothing() -> None:
    mind = mind_with(BY_HEART, rows=ENDING)
    said(mind, rows=ENDING)
    mind.forget()
    mind.hear(row_of(ENDING, Name("bee", ",")))
    assert best(mind) is not None


def test_what_was_asked_late_is_up_to_date() -> None:
    mind = mind_with(HEARD)
    choice = best(mind)
    assert choice is not None
    assert choice.timing is Timing.EXACT  # so the others have heard nothing yet
    for word in ("zorp", "flies"):
        mind.hear(row_of(ROWS, Name("bee", word)))
    choice = best(mind)
    assert choice is not None
    assert (choice.neuron, choice.timing) == (Name("bee", "to").neuron, Timing.SEQ)


def test_nothing_follows_nothing() -> None:
    mind = mind_with([])
    assert run(mind.candidates(), ROWS) is None
    assert said(mind) == []
    assert said(mind, beam=Beam()) == []


def test_a_neuron_that_nobody_holds_ends_the_answer() -> None:
    mind = mind_with(HEARD[:3])
    assert said(mind, rows=DeltaRows(EMPTY)) == []
    assert len(mind) == 3


def test_a_mind_that_forgot_is_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    mind = mind_with(HEARD)
    first = said(mind)
    mind.forget()
    assert len(mind) == 0
    assert run(mind.candidates(), ROWS) is None
    board = mind._heard.board
    for name in HEARD:
        mind.hear(row_of(ROWS, name))
    assert said(mind) == first
    assert mind._heard.board is board
    monkeypatch.setattr(boards, "_MOST_SLOTS", 3)
    mind.forget()
    assert mind._heard.board is not board
    for name in HEARD:
        mind.hear(row_of(ROWS, name))
    assert said(mind) == first


def test_only_rows_that_are_not_wired_are_asked_for() -> None:
    asked = Asked(ROWS)
    mind = mind_with(HEARD)
    names = [HEARD[0], END, HEARD[0]]
    best(mind)
    rows = run(read(mind, [name.neuron for name in names]), asked)
    assert [row and row.name for row in rows] == names
    assert asked.questions == [Question([END.neuron])]
    assert run(read(mind, [HEARD[1].neuron]), asked)[0] is not None
    assert len(asked.questions) == 1


def test_looking_ahead_leaves_the_mind_as_it_was() -> None:
    mind = mind_with(HEARD)
    choice = run(look_ahead(mind, Beam(width=2, depth=3)), ROWS)
    assert len(mind) == len(HEARD)
    assert choice == best(mind)
    tokens = said(mind, beam=Beam(width=2, depth=3))
    assert [token.name.word for token in tokens][:3] == ["flies", "to", "red"]


def test_looking_ahead_finds_the_way_that_is_better_in_all_and_asks_once_a_step() -> None:
    # "x" follows more often, but leads to less.
    rows = Asked(DeltaRows(learn(built("b/ c/ d/ bee/N", *["b/ x/ bee/N"] * 2), SMALL)))
    mind = mind_with([Name("bee", "b")], (Timing.NONE,), rows)
    first, ahead = best(mind), run(look_ahead(mind, Beam(width=2, depth=3)), rows)
    assert first is not None
    assert ahead is not None
    assert first.neuron == Name("bee", "x").neuron
    assert ahead.neuron == Name("bee", "c").neuron
    assert [len(question.neurons) for question in rows.questions] == [1, 2, 2]


def test_a_way_that_has_ended_stays_as_it_is() -> None:
    # Were "w" heard twice, it would lead on to "m".
    spec = ModelSpec(seed_tokens=1)
    lessons = ["bee/N q/ p/ w/", *["bee/N q/ p/ v/"] * 2, "bee/N w/ w/ m/"]
    rows = DeltaRows(learn(built(*lessons), spec))
    mind = Mind(Batch(spec), [Timing.EXACT])
    for word in ("q", "p"):
        mind.hear(row_of(rows, Name("bee", word)))
    ahead = run(look_ahead(mind, Beam(width=2, depth=3)), rows)
    assert ahead is not None
    assert ahead.neuron == Name("bee", "v").neuron


@pytest.mark.parametrize("beam", [{"width": 0}, {"width": -1}, {"depth": 0}, {"depth": -1}])
def test_a_beam_without_width_or_depth_is_refused(beam: dict[str, int]) -> None:
    with pytest.raises(UsageError, match=next(iter(beam))):
        run(look_ahead(mind_with(HEARD), Beam(**beam)), ROWS)


def test_a_copy_goes_on_alone() -> None:
    mind = mind_with(HEARD)
    other = mind.copy()
    other.hear(row_of(ROWS, END))
    assert best(other) is None
    first = best(mind)
    assert first is not None
    assert first.neuron == Name("bee", "flies").neuron
    other.forget()
    assert len(other) == 0
    assert best(mind) == first
    assert len(mind) == len(HEARD)
