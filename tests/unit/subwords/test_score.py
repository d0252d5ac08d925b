"""Scores of whole choices: they follow the rows, whatever was kept of others, and ignore lies."""

import hashlib
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from msgspec.structs import replace

from giaann_p2p.model.rows import Answer, DeltaRows, Neuron, Question, Row, Rows, run
from giaann_p2p.model.subwords import score as module
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place, needed
from giaann_p2p.model.subwords.ids import ANY, EVERYTHING
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.likelihood import log_probabilities
from giaann_p2p.model.subwords.mix import Candidates, candidates_after, mix
from giaann_p2p.model.subwords.tokeniser import TOKENS, VOCABULARY
from tests.helpers_subwords import RECOMMENDED, before, chosen, places_of, sequences_named

SOME = np.arange(0, VOCABULARY, 97)
KINDS = ("everything", "anywhere", "own")
Lie = Callable[[Row], Row | None]


def kind_of(neuron: Neuron) -> str:
    return "everything" if neuron == EVERYTHING else "anywhere" if neuron.concept == ANY else "own"


class Mixed:
    """Rows of two brains: of each kind from one of them."""

    def __init__(self, brains: tuple[Rows, Rows], newer: tuple[bool, ...]) -> None:
        self._brains, self._newer = brains, dict(zip(KINDS, newer, strict=True))

    def read(self, question: Question) -> Answer:
        return [
            self._brains[self._newer[kind_of(neuron)]].read(Question([neuron]))[0]
            for neuron in question.neurons
        ]


class Lying:
    """Rows of an honest brain, but of some kinds as a liar tells them."""

    def __init__(self, rows: Rows, kinds: tuple[str, ...], lie: Lie) -> None:
        self._rows, self._kinds, self._lie = rows, kinds, lie

    def read(self, question: Question) -> Answer:
        answer = self._rows.read(question)
        told = zip(question.neurons, answer, strict=True)
        return [row and (self._lie(row) if kind_of(at) in self._kinds else row) for at, row in told]


@pytest.fixture(scope="module")
def brains() -> tuple[Rows, Rows]:
    wiki = sequences_named("wiki")
    return tuple(DeltaRows(learn_tokens(wiki[:end], RECOMMENDED)) for end in (20, 47))


def found_in(rows: Rows, last: list[Place], counted: CountedRows) -> tuple[Candidates, list[float]]:
    """Return the candidates, and the logarithms of some tokens' probabilities."""
    evidence = Evidence(counted)
    run(evidence.need(needed(evidence, last)), rows)
    found = candidates_after(evidence, last)
    assert found is not None
    return found, log_probabilities(evidence, last, SOME).tolist()


def test_scores_follow_whichever_row_changes(brains: tuple[Rows, Rows]) -> None:
    places, shared = places_of(sequences_named("wiki")[3:4]), CountedRows(RECOMMENDED)
    every = list(product([False, True], repeat=3))
    most = 0
    for at in (12, 33, 40):
        seen = set()
        for newer in [*every, *reversed(every), *every[::3], *every[::-5]]:
            rows, last = Mixed(brains, newer), before(places, at)
            found, logs = found_in(rows, last, shared)
            wanted, wanted_logs = found_in(rows, last, CountedRows(RECOMMENDED))
            assert found.token.tolist() == wanted.token.tolist()
            assert found.score.tolist() == wanted.score.tolist()
            assert logs == wanted_logs
            seen.add(tuple(logs))
        most = max(most, len(seen))
    assert most == len(every)  # each kind of row matters


@pytest.mark.parametrize("limits", [(-1, 0), (1 << 40, 0)])
def test_long_rows_and_short_ones_are_added_up_to_the_same(
    brains: tuple[Rows, Rows], limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    places, counted = places_of(sequences_named("wiki")[5:6]), CountedRows(RECOMMENDED)
    blind = [place._replace(home=None) for place in places]  # so that nothing is recalled
    asked = [before(known, at) for known in (places, blind) for at in range(9, 60)]
    wanted = [found_in(brains[1], last, counted)[0] for last in asked]
    monkeypatch.setattr(module, "_FEW", limits[0])
    monkeypatch.setattr(module, "_FEWER", limits[1])
    for last, one in zip(asked, wanted, strict=True):
        found = found_in(brains[1], last, counted)[0]
        assert found.token.tolist() == one.token.tolist()
        assert found.score.tolist() == one.score.tolist()
    assert max(len(one.token) for one in wanted) > 50


def below_one(row: Row) -> Row:
    return replace(row, strength=np.ones_like(row.strength))


def no_tokens(row: Row) -> Row:
    strange = np.arange(len(row.target_concept), dtype=np.uint64)
    return replace(row, target_concept=strange, target_feature=strange)


def nothing(row: Row) -> None:
    """Say that there is no such row."""


@pytest.mark.parametrize("lie", [below_one, no_tokens])
@pytest.mark.parametrize(
    "kinds", [("own",), ("anywhere",), ("everything",), ("own", "anywhere"), KINDS]
)
def test_what_a_liar_says_of_nothing_counts_as_no_row(
    brains: tuple[Rows, Rows], kinds: tuple[str, ...], lie: Callable[[Row], Row]
) -> None:
    places = places_of(sequences_named("wiki")[3:4])
    for at in (12, 33):
        last = before(places, at)
        lies, silence = Lying(brains[1], kinds, lie), Lying(brains[1], kinds, nothing)
        evidence, quiet = (Evidence(CountedRows(RECOMMENDED)) for _ in range(2))
        assert chosen(evidence, last, lies) == chosen(quiet, last, silence)
        logs = log_probabilities(evidence, last, SOME)
        assert np.isfinite(logs).all()
        assert logs.tolist() == log_probabilities(quiet, last, SOME).tolist()
        assert (mix(evidence, last) is None) == ("everything" in kinds)


def test_an_own_row_that_no_row_of_any_column_confirms_is_still_a_distribution(
    brains: tuple[Rows, Rows],
) -> None:
    places = places_of(sequences_named("wiki")[3:4])
    rows, last = Lying(brains[1], ("anywhere",), nothing), before(places, 20)
    evidence = Evidence(CountedRows(RECOMMENDED))
    choice = chosen(evidence, last, rows)
    assert choice is not None
    assert choice.basis is Basis.NONE
    every = np.exp(log_probabilities(evidence, last, np.arange(VOCABULARY)))
    assert every.sum() == pytest.approx(1, abs=1e-9)
    assert every[TOKENS - 1] > 0


def test_choices_are_the_same_on_every_machine(brains: tuple[Rows, Rows]) -> None:
    digest, evidence = hashlib.blake2b(digest_size=16), Evidence(CountedRows(RECOMMENDED))
    for sequence in sequences_named("wiki")[:8]:
        places = places_of(sequence)
        for at in range(1, len(places)):
            last = before(places, at)
            for known in (last, [place._replace(home=None) for place in last]):
                choice = chosen(evidence, known, brains[1])
                assert choice is not None
                digest.update(repr((choice.token, choice.score, choice.probability)).encode())
    assert digest.hexdigest() == "4ceba7b468f17b5d74bb7ddb9755208f"
