"""A brain of subwords: it learns into the same store, always answers, and is measured."""

from pathlib import Path

import pytest

from giaann_p2p import (
    Brain,
    ModelSpec,
    PromptError,
    Sampling,
    SubwordToken,
    UsageError,
    subword_spec,
)
from giaann_p2p.model.manner import Beam, Variant
from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords import followers, lif, profile
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.counts import Tally, tallied
from giaann_p2p.model.subwords.evaluate import TokenScore
from giaann_p2p.model.subwords.spec import reference_spec
from tests.helpers import DATA

WIKI, QUICK = DATA / "wiki.txt", DATA / "quick.txt"
BEES = "Bees make honey from the nectar that they collect from flowers in the summer."


@pytest.fixture(scope="module")
def brain() -> Brain:
    brain = Brain(subword_spec(), device="cpu")
    (report,) = brain.train(WIKI)
    assert (report.sentences, report.sequences, report.unit) == (47, 47, "texts")
    return brain


@pytest.fixture
def bees() -> Brain:
    brain = Brain(subword_spec(), device="cpu")
    brain.train(BEES)
    return brain


def measured(brain: Brain, **options: str) -> TokenScore:
    score = brain.evaluate(WIKI, **options)  # type: ignore[arg-type]
    assert isinstance(score, TokenScore)
    assert score.predicted + score.unreached == 3524
    assert (score.sentences, score.seeded, score.skipped) == (47, 47 * 8, 0)
    return score


@pytest.mark.slow
def test_accuracy_on_wiki(brain: Brain) -> None:
    score = measured(brain)
    assert score.accuracy >= 0.990
    assert score.accuracy_given >= 0.996
    assert score.accuracy_strict >= 0.9665
    assert (score.columns, score.silent) == ("causal", 0)


@pytest.mark.slow
def test_accuracy_with_its_own_tokens(brain: Brain) -> None:
    score = measured(brain, feed="own")
    assert score.accuracy_given >= 0.85
    assert 0.7 < score.accuracy < score.accuracy_given


@pytest.mark.slow
def test_the_references_read_out_in_a_store_of_the_references_model() -> None:
    brain = Brain(reference_spec(), device="cpu")
    brain.train(WIKI)
    assert measured(brain, readout="lif-test").right_words == 3238
    assert measured(brain, readout="lif-train").right_words in range(3443 - 18, 3443 + 19)
    own = measured(brain, readout="lif-train", feed="own")
    assert own.columns == "given"
    assert own.unreached > 0
    assert brain.info().connections == 70_638
    with pytest.raises(UsageError, match="no rows that ignore columns, which mix needs"):
        brain.evaluate(WIKI)
    with pytest.raises(UsageError, match="no rows that ignore columns, which prompts need"):
        brain.generate(BEES)


def test_a_brain_counts_each_token_once(brain: Brain) -> None:
    info = brain.info()
    assert (info.occurrences, info.connections) == (3900, 35_406)
    assert Brain(subword_spec()).info().occurrences == 0


def test_a_prompt_goes_on_as_it_was_learned_and_ends_where_that_ended(bees: Brain) -> None:
    answer = bees.generate("Bees make honey from the nectar that they")
    assert answer.prompt + answer.text == BEES
    assert (answer.stopped, answer.unknown, answer.completion) == ("end", [], "")
    assert bees.generate("Bees make honey from ").text.startswith("the nectar")
    assert bees.generate("Bees make honey from", max_tokens=2).text == " the nectar"
    assert bees.generate("Bees make honey from", max_tokens=2).stopped == "limit"


def test_each_token_says_what_it_rests_on_and_how_sure_it_is(bees: Brain) -> None:
    tokens = bees.generate("Bees make honey from the nectar that they").tokens
    assert {token.timing for token in tokens} <= {Basis.RECALL, Basis.OWN, Basis.ANY}
    assert all(token.probability and 0 < token.probability <= 1 for token in tokens)
    assert tokens[0].word == " collect"
    assert tokens[0].name.concept == " nectar"


@pytest.mark.parametrize(
    "prompt", ["zorp", "Bees", "of", "?", "🐝", "They went", "1642", "the the", " .", "x" * 900]
)
def test_no_prompt_is_left_without_an_answer(bees: Brain, brain: Brain, prompt: str) -> None:
    for one in (bees, brain):
        answer = one.generate(prompt, max_tokens=6)
        assert answer.tokens
        assert answer.stopped in ("end", "limit")


def test_a_token_comes_with_its_best_rivals_if_they_are_asked_for(brain: Brain) -> None:
    prompt = "The government of the"
    (token,) = brain.generate(prompt, max_tokens=1, sampling=Sampling(rivals=5)).tokens
    assert isinstance(token, SubwordToken)
    shares = [rival.probability for rival in token.rivals]
    assert len(shares) == 5
    assert shares == sorted(shares, reverse=True)
    assert token.rivals[0] == (token.word, token.probability)
    assert sum(shares) <= 1
    (drawn,) = brain.generate(
        prompt, max_tokens=1, sampling=Sampling(rivals=2, temperature=9, seed=3)
    ).tokens
    assert isinstance(drawn, SubwordToken)
    assert drawn.rivals == token.rivals[:2]  # the model's, whatever is drawn
    (plain,) = brain.generate(prompt, max_tokens=1).tokens
    assert plain == token._replace(rivals=())


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each row that is counted adds its number of connections."""
    found: list[int] = []

    def noted(key: Ints, times: Ints) -> Tally:
        found.append(len(key))
        return tallied(key, times)

    monkeypatch.setattr(followers, "tallied", noted)
    return found


def test_a_brain_counts_the_rows_of_its_answers_once(bees: Brain, counted: list[int]) -> None:
    answer, before = bees.generate("Bees make"), len(counted)
    assert bees.generate("Bees make") == answer
    assert len(counted) == before > 0
    bees.train("Bees make wax. They make it in the hive and it is white at first.")
    bees.generate("Bees make")
    assert len(counted) > before


def test_a_brain_lets_go_of_rows_when_there_are_too_many(
    bees: Brain, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile, "MOST_CONNECTIONS", 0)
    answer, before = bees.generate("Bees make"), len(counted)
    assert bees.generate("Bees make") == answer
    assert len(counted) > before


def test_each_text_of_an_evaluation_may_forget_the_gains_of_others(
    bees: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    monkeypatch.setattr(lif.Lif, "begin", lambda self: begun.append(len(self._gains)))
    bees.evaluate("They collect honey in the summer of the year. " * 9, readout="lif-test")
    assert len(begun) == 3


def test_unknown_tokens_are_named(bees: Brain) -> None:
    answer = bees.generate("zorp", max_tokens=3)
    assert answer.unknown == ["z", "orp"]
    assert answer.tokens[0].timing is Basis.NONE
    assert answer.tokens[0].candidates == 0


def test_a_brain_that_learned_nothing_says_so() -> None:
    with pytest.raises(PromptError, match="nothing was learned yet: train"):
        Brain(subword_spec()).generate("Bees make")


def test_characters_of_several_tokens_come_out_whole() -> None:
    brain = Brain(subword_spec(), device="cpu")
    text = "The scribe wrote the sign 𒀀 with a reed in the wet clay of the tablet."
    brain.train(text)
    answer = brain.generate("The scribe wrote the sign")
    assert answer.prompt + answer.text == text


def test_only_the_last_sentences_of_a_prompt_matter(bees: Brain) -> None:
    prompt = "Bees make honey from the nectar that they"
    assert bees.generate("They go. " * 50 + prompt).text == bees.generate(prompt).text


@pytest.mark.parametrize("prompt", ["", " ", "\0 \x07"])
def test_an_empty_prompt_is_refused(bees: Brain, prompt: str) -> None:
    with pytest.raises(PromptError, match="the prompt is empty"):
        bees.generate(prompt)


def test_options_of_the_other_profile_are_refused(bees: Brain) -> None:
    with pytest.raises(UsageError, match="profile words"):
        bees.generate(BEES, timing="exact")
    with pytest.raises(UsageError, match="profile words"):
        bees.generate(BEES, beam=Beam())
    with pytest.raises(UsageError, match="profile words"):
        bees.evaluate(BEES, variant=Variant(graded_strengths=True))
    with pytest.raises(
        UsageError, match="no read-out is named 'best'; choose from mix, lif-train, lif-test"
    ):
        bees.evaluate(BEES, readout="best")
    with pytest.raises(UsageError, match="the profile words has no read-outs"):
        Brain(ModelSpec()).evaluate(BEES, readout="mix")


def test_the_usual_brain_reads_subwords() -> None:
    assert Brain(device="cpu").spec == subword_spec()


def test_texts_are_recalled_from_their_first_words(bees: Brain) -> None:
    known = bees.recall(BEES, words=4)
    assert (known.sentences, known.recalled, known.missed, known.unit) == (1, 1, [], "texts")
    strange = bees.recall("Bees make honey and then they sing to the queen of the hive.", words=3)
    ((prompt, rest, said),) = strange.missed
    assert (prompt, rest) == ("Bees make honey", " and then they sing to the queen of the hive.")
    assert said.startswith(" from the nectar")
    assert bees.recall(BEES, words=14).too_short == 1
    assert bees.recall("of the and to in at by from over under", words=3).skipped == 1


def test_a_cropped_text_is_recalled_to_where_it_was_learned(brain: Brain) -> None:
    found = brain.recall(" ".join(WIKI.read_text().split()[:400]), words=12)
    assert found.sentences > 2
    assert found.share >= 0.6


@pytest.mark.slow
def test_texts_of_any_order_give_one_digest(tmp_path: Path) -> None:
    with Brain.open(tmp_path / "a", subword_spec()) as first:
        first.train(WIKI, BEES)
        wanted = first.digest()
    with Brain.open(tmp_path / "b", subword_spec()) as second:
        second.train(BEES)
        second.train(WIKI, QUICK)
        assert second.digest() != wanted
    with Brain.open(tmp_path / "c", subword_spec()) as third:
        third.train(BEES, WIKI, workers=2)
        assert third.digest() == wanted
    with Brain.open(tmp_path / "a", readonly=True) as again:
        assert again.spec == subword_spec()
        assert again.digest() == wanted
        assert again.generate("Bees make honey from", max_tokens=2).text == " the nectar"
    assert not Brain.check(tmp_path / "a").problems
    with pytest.raises(UsageError, match="another model: profile: words and subwords"):
        Brain.open(tmp_path / "a", ModelSpec())


def test_an_evaluation_counts_what_is_too_short_and_what_is_skipped(bees: Brain) -> None:
    score = bees.evaluate("Bees go. They go. They go.", seed_tokens=3)
    assert (score.sentences, score.skipped) == (1, 0)
    score = bees.evaluate("Bees go. They go. They go again.", seed_tokens=50)
    assert (score.sentences, score.too_short, score.predicted) == (0, 1, 0)
    assert bees.evaluate("Go.").skipped == 1
    nothing = Brain(subword_spec())
    assert nothing.evaluate(BEES).silent == nothing.evaluate(BEES).predicted > 0
    assert nothing.evaluate(BEES, feed="own").unreached > 0
