"""Rows as counts: what is read once, what is kept, and what choices say of themselves."""

import pytest

from giaann_p2p.model.rows import Answer, DeltaRows, Question, run
from giaann_p2p.model.subwords import evidence as module
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place, needed
from giaann_p2p.model.subwords.ids import EVERYTHING
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.lif import TRAIN, Lif
from giaann_p2p.model.subwords.mix import mix
from tests.helpers_subwords import (
    RECOMMENDED,
    before,
    chosen,
    places_of,
    sequences_named,
)


class Counted:
    """Rows that count how many of them were read."""

    def __init__(self, rows: DeltaRows) -> None:
        self._rows, self.read_rows = rows, 0

    def read(self, question: Question) -> Answer:
        self.read_rows += len(question.neurons)
        return self._rows.read(question)


@pytest.fixture
def rows() -> Counted:
    return Counted(DeltaRows(learn_tokens(sequences_named("quick"), RECOMMENDED)))


@pytest.fixture(scope="module")
def places() -> list[Place]:
    return places_of(next(iter(sequences_named("quick"))))


def test_a_choice_needs_two_rows_a_token_and_that_of_everything(places: list[Place]) -> None:
    evidence = Evidence(CountedRows(RECOMMENDED))
    assert len(needed(evidence, before(places, 20))) == 11
    assert len(needed(evidence, [place._replace(home=None) for place in places[:2]])) == 3
    assert needed(evidence, []) == [EVERYTHING]


def test_a_row_is_read_once(rows: Counted, places: list[Place]) -> None:
    evidence = Evidence(CountedRows(RECOMMENDED))
    assert chosen(evidence, before(places, 20), rows) == chosen(evidence, before(places, 20), rows)
    assert rows.read_rows <= 11
    assert repr(evidence).startswith(f"<Evidence: {rows.read_rows} rows, ")


def test_rows_are_let_go_when_there_are_too_many(
    rows: Counted, places: list[Place], monkeypatch: pytest.MonkeyPatch
) -> None:
    free, bound = Evidence(CountedRows(RECOMMENDED)), Evidence(CountedRows(RECOMMENDED))
    wanted = [chosen(free, before(places, at), rows) for at in range(1, len(places))]
    assert free.nbytes > bound.nbytes
    monkeypatch.setattr(module, "_MOST_ROWS", 20)
    found = [chosen(bound, before(places, at), rows) for at in range(1, len(places))]
    assert found == wanted
    assert bound.nbytes < free.nbytes


def test_a_choice_says_what_it_rests_on(rows: Counted, places: list[Place]) -> None:
    evidence = Evidence(CountedRows(RECOMMENDED))
    known, blind = before(places, 20), [place._replace(home=None) for place in before(places, 20)]
    cases = {
        Basis.RECALL: known,
        Basis.OWN: known[:4],
        Basis.ANY: blind,
        Basis.NONE: [Place(199_997, None)],
    }
    for basis, last in cases.items():
        choice = chosen(evidence, last, rows)
        assert choice is not None
        assert choice.basis is basis
        assert (choice.candidates == 0) == (basis is Basis.NONE)
        assert 0 < choice.probability <= 1


def test_without_any_token_read_the_most_frequent_is_chosen(rows: Counted) -> None:
    tokens = sequences_named("quick").token.tolist()
    choice = chosen(Evidence(CountedRows(RECOMMENDED)), [], rows)
    assert choice is not None
    assert choice.token == min(set(tokens), key=lambda token: (-tokens.count(token), token))


def test_a_brain_that_learned_nothing_has_no_answer() -> None:
    empty = DeltaRows(learn_tokens(sequences_named("quick")[:0], RECOMMENDED))
    evidence = Evidence(CountedRows(RECOMMENDED))
    assert chosen(evidence, [Place(11, 11)], empty) is None
    run(evidence.need([EVERYTHING]), empty)
    assert mix(evidence, []) is None


def test_lif_needs_every_column(rows: Counted) -> None:
    lif = Lif(Evidence(CountedRows(RECOMMENDED)), TRAIN)
    with pytest.raises(ValueError, match="needs the column of every token"):
        lif.needed([Place(11, None)])


def test_lif_predicts_nothing_after_what_never_occurred(rows: Counted) -> None:
    evidence = Evidence(CountedRows(RECOMMENDED))
    lif = Lif(evidence, TRAIN)
    read = [Place(199_997, 199_997, prime=True)]
    run(evidence.need(lif.needed(read)), rows)
    assert lif.choose(read) is None
