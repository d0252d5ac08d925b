"""Accuracy: what is counted, and as what."""

import pytest

from giaann_p2p import Brain
from giaann_p2p.errors import UsageError
from giaann_p2p.model.activation import Batch
from giaann_p2p.model.delta import EMPTY, Delta
from giaann_p2p.model.evaluate import Feed, Score, names_of, score_sequence
from giaann_p2p.model.generate import Mind
from giaann_p2p.model.learn import learn
from giaann_p2p.model.manner import Timing
from giaann_p2p.model.rows import DeltaRows, Name, run
from giaann_p2p.model.spec import ModelSpec
from tests.helpers import SMALL, built

BEES = "a/ b/ c/ bee/N flies/ to/ red/ hill/N ./"
FOUR = SMALL.seed_tokens


def score(
    tested: list[str], known: Delta, feed: Feed, timing: Timing = Timing.EXACT, seed: int = FOUR
) -> Score:
    result = Score()
    for sequence in built(*tested):
        run(
            score_sequence(Mind(Batch(SMALL), [timing]), sequence, seed, feed, result),
            DeltaRows(known),
        )
    return result


@pytest.fixture(scope="module")
def bees() -> Delta:
    return learn(built(BEES), SMALL)


@pytest.mark.parametrize("feed", list(Feed))
def test_what_was_learned_is_all_right(bees: Delta, feed: Feed) -> None:
    found = score([BEES], bees, feed)
    assert (found.sentences, found.seeded, found.predicted) == (1, 4, 5)
    assert (found.right_words, found.right_neurons) == (5, 5)
    assert (found.silent, found.unreached) == (0, 0)
    assert found.accuracy == found.neuron_accuracy == 1.0


def test_silence_is_wrong_when_the_true_tokens_are_fed() -> None:
    found = score([BEES], EMPTY, Feed.TRUE)
    assert (found.predicted, found.silent, found.right_words, found.unreached) == (5, 5, 0, 0)
    assert found.accuracy == 0.0


def test_its_own_silence_ends_a_sentence() -> None:
    found = score([BEES], EMPTY, Feed.OWN)
    assert (found.sentences, found.predicted, found.silent, found.unreached) == (1, 0, 0, 5)
    assert found.accuracy == found.neuron_accuracy == 0.0


def test_its_own_words_lead_astray_for_good(bees: Delta) -> None:
    other = "a/ b/ c/ bee/N sleeps/ to/ red/ hill/N ./"
    true, own = (score([other], bees, feed) for feed in (Feed.TRUE, Feed.OWN))
    assert (own.predicted, own.right_words, own.unreached) == (5, 4, 0)
    assert true.predicted == 5
    assert true.right_words < 4
    assert true.silent > 0


def test_what_comes_too_early_to_an_end_is_unreached(bees: Delta) -> None:
    found = score([BEES + " then/ sun/N sets/ ./"], bees, Feed.OWN)
    assert (found.predicted, found.right_words, found.unreached) == (5, 5, 4)


def test_a_sentence_must_be_longer_than_the_seed(bees: Delta) -> None:
    assert score([BEES], bees, Feed.TRUE, seed=9) == Score(too_short=1)
    longer = score([BEES], bees, Feed.TRUE, seed=8)
    assert (longer.sentences, longer.seeded, longer.predicted) == (1, 8, 1)


def test_a_right_word_may_be_the_wrong_neuron() -> None:
    known = learn(built("a/ b/ c/ bee/N of/ red/ hill/N"), SMALL)
    found = score(["a/ b/ c/ bee/N of/ red/ meadow/N"], known, Feed.TRUE)
    assert (found.predicted, found.right_words, found.right_neurons) == (3, 2, 1)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.neuron_accuracy == pytest.approx(1 / 3)


def test_counts_add_up_over_sentences(bees: Delta) -> None:
    found = score([BEES, "x/ bee/N", BEES], bees, Feed.TRUE)
    assert (found.sentences, found.seeded, found.predicted, found.right_words) == (2, 8, 10, 10)


def test_the_names_of_a_sequence() -> None:
    names = names_of(built("the/ bees=bee/N of/ hills=hill/N"))
    assert names == [Name("bee", "the"), Name("bee", None), Name("bee", "of"), Name("hill", None)]


def test_no_sentence_no_accuracy() -> None:
    score = Score()
    assert (score.accuracy, score.neuron_accuracy, score.tokens_per_second) == (0.0, 0.0, 0.0)


def test_the_speed_counts_seeds_and_predictions() -> None:
    assert Score(seeded=8, predicted=10, seconds=2.0).tokens_per_second == 9.0


@pytest.mark.parametrize(
    "arguments", [{"feed": "bogus"}, {"timing": "bogus"}, {"seed_tokens": 0}, {"seed_tokens": -1}]
)
def test_what_cannot_be_evaluated_is_refused(arguments: dict[str, str | int]) -> None:
    with pytest.raises(UsageError):
        Brain(ModelSpec(), device="cpu").evaluate("Bees make honey.", **arguments)  # type: ignore[arg-type]
