"""`mix` as a distribution: over all tokens, in the order of its scores, and measured in bits."""

import math

import numpy as np
import pytest

from giaann_p2p import Brain, UsageError, subword_spec
from giaann_p2p.model.rows import DeltaRows, run
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.evaluate import TokenScore
from giaann_p2p.model.subwords.evidence import CountedRows, Evidence, Place, needed
from giaann_p2p.model.subwords.gain import SCORE_UNITS
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.likelihood import log_probabilities, log_probability
from giaann_p2p.model.subwords.mix import candidates_after, mix
from giaann_p2p.model.subwords.tokeniser import TOKENS, VOCABULARY
from tests.helpers import DATA
from tests.helpers_subwords import RECOMMENDED, before, places_of, sequences_named

ALL = np.arange(VOCABULARY)
NEVER = TOKENS - 1
"""A token that the text does not have."""


@pytest.fixture(scope="module")
def rows() -> DeltaRows:
    return DeltaRows(learn_tokens(sequences_named("quick"), RECOMMENDED))


def read_at(rows: DeltaRows, at: int) -> tuple[Evidence, list[Place]]:
    """Return what a choice at a position of the first sequence depends on, with its rows read."""
    evidence = Evidence(CountedRows(RECOMMENDED))
    last = before(places_of(sequences_named("quick")[0:1]), at)
    run(evidence.need(needed(evidence, last)), rows)
    return evidence, last


@pytest.mark.parametrize("at", [0, 1, 3, 9, 30])
def test_the_probabilities_of_all_tokens_sum_to_one(rows: DeltaRows, at: int) -> None:
    evidence, last = read_at(rows, at)
    logs = log_probabilities(evidence, last, ALL)
    assert math.fsum(np.exp(logs).tolist()) == pytest.approx(1, abs=1e-12)
    assert log_probability(evidence, last, 13) == logs[13]


def test_an_empty_brain_holds_all_tokens_for_equal() -> None:
    evidence, last = read_at(DeltaRows(learn_tokens(sequences_named("quick")[0:0], RECOMMENDED)), 9)
    assert mix(evidence, last) is None
    assert log_probability(evidence, last, 13) == pytest.approx(-math.log(VOCABULARY))


@pytest.mark.parametrize("known", [0, 4])
def test_differences_are_those_of_scores_where_recall_chooses_nothing(
    rows: DeltaRows, known: int
) -> None:
    compared = 0  # recall needs all five columns
    for at in range(8, 60):
        evidence, read = read_at(rows, at)
        last = read[:known] + [place._replace(home=None) for place in read[known:]]
        run(evidence.need(needed(evidence, last)), rows)
        found = candidates_after(evidence, last)
        assert found is not None
        assert found.basis is (Basis.OWN if known else Basis.ANY)
        logs = log_probabilities(evidence, last, found.token)
        scores = found.score / SCORE_UNITS
        assert logs - logs[0] == pytest.approx(scores - scores[0], abs=1e-9)
        compared += len(found.token)
    assert compared > 200


def test_what_recall_excludes_is_still_possible(rows: DeltaRows) -> None:
    evidence, last = read_at(rows, 30)
    found = candidates_after(evidence, last)
    assert found is not None
    assert found.basis is Basis.RECALL
    assert -30 < log_probability(evidence, last, NEVER) < -10
    assert found.rank(NEVER) is None


def test_ranks_are_places_in_the_order_of_choice(rows: DeltaRows) -> None:
    evidence, last = read_at(rows, 30)
    run(evidence.need(needed(evidence, last[:1])), rows)
    found, choice = candidates_after(evidence, last[:1]), mix(evidence, last[:1])
    assert found is not None
    assert choice is not None
    tokens = found.token.tolist()
    order = sorted(range(len(tokens)), key=lambda i: (-int(found.score[i]), tokens[i]))
    assert [found.rank(tokens[i]) for i in order] == list(range(len(tokens)))
    assert tokens[order[0]] == choice.token


@pytest.fixture(scope="module")
def brain() -> Brain:
    brain = Brain(subword_spec(), device="cpu")
    brain.train(DATA / "quick.txt")
    return brain


def test_an_evaluation_measures_bits_only_if_asked(brain: Brain) -> None:
    plain, asked = brain.evaluate(DATA / "quick.txt"), brain.evaluate(DATA / "quick.txt", bits=True)
    assert isinstance(plain, TokenScore)
    assert isinstance(asked, TokenScore)
    assert (plain.bits, plain.bits_per_byte, plain.perplexity) == (None, None, None)
    assert asked.bits is not None
    assert asked.bits_per_byte == asked.bits / asked.predicted_bytes
    assert asked.perplexity == pytest.approx(2 ** (asked.bits / asked.predicted))
    assert 0 < asked.bits_per_byte < 1  # it was learned
    assert asked.bits_per_byte_given is not None
    assert asked.bits_per_byte_strict is not None
    assert asked.bits_per_byte_given < asked.bits_per_byte < asked.bits_per_byte_strict
    assert asked.perplexity_given is not None
    assert asked.perplexity_given == pytest.approx(
        2 ** (asked.bits_per_byte_given * asked.predicted_bytes / asked.predicted)
    )
    assert (plain.bits_per_byte_given, plain.perplexity_strict) == (None, None)
    assert plain.right_words == asked.right_words


def test_measures_from_strict_to_given_and_what_choices_rest_on(brain: Brain) -> None:
    score = brain.evaluate(DATA / "quick.txt")
    assert isinstance(score, TokenScore)
    assert score.accuracy_strict <= score.accuracy <= score.accuracy_given
    assert score.accuracy <= score.accuracy_top5 <= 1
    assert score.accuracy_strict < score.accuracy_top5_strict <= score.accuracy_top5
    assert score.accuracy_top5 <= score.accuracy_top5_given <= 1
    assert score.accuracy_given < score.accuracy_top5_given
    assert sum(tier.choices for tier in score.tiers.values()) == score.predicted
    assert sum(tier.right for tier in score.tiers.values()) == score.right_words
    assert score.tiers[Basis.RECALL].choices > 0


def test_bits_of_what_has_none_are_refused(brain: Brain) -> None:
    with pytest.raises(UsageError, match="only with the read-out mix"):
        brain.evaluate(DATA / "quick.txt", readout="lif-test", bits=True)
    with pytest.raises(UsageError, match="only with the read-out mix"):
        brain.evaluate(DATA / "quick.txt", feed="own", bits=True)
    with pytest.raises(UsageError, match="words has no probabilities for words"):
        Brain(ModelSpec(), device="cpu").evaluate("Bees make honey.", bits=True)
