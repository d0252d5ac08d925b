"""Tokens drawn by their probability: the same on every machine, as often as their odds say."""

import json
from math import exp

import numpy as np
import pytest
from typer.testing import CliRunner

from giaann_p2p.cli.main import app
from giaann_p2p.errors import UsageError
from giaann_p2p.model.manner import Manner, Sampling
from giaann_p2p.model.profiles import profile_of
from giaann_p2p.model.rows import DeltaRows
from giaann_p2p.model.said import Generation
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.gain import SCORE_UNITS
from giaann_p2p.model.subwords.learn import learn_tokens
from giaann_p2p.model.subwords.logarithm import LOG_UNITS, exponentials, log_table
from giaann_p2p.model.subwords.sample import RECENT, drawn, odds, penalised
from giaann_p2p.solo.answer import Answer
from tests.helpers import DATA
from tests.helpers_subwords import RECOMMENDED, sequences_named

SHARES = np.array([0.5, 0.3, 0.15, 0.05])
TOKENS = np.array([11, 290, 1_000, 199_000])
SCORES = np.rint(np.log(SHARES) * SCORE_UNITS).astype(np.int64)
PROMPT = "The government of the"


@pytest.fixture(scope="module")
def rows() -> DeltaRows:
    return DeltaRows(learn_tokens(sequences_named("wiki"), RECOMMENDED))


def answer(rows: DeltaRows, prompt: str = PROMPT, **options: object) -> Generation:
    sampling = Sampling(**options)  # type: ignore[arg-type]
    manner = Manner(max_tokens=16, sampling=sampling)
    return Answer(prompt, rows, profile_of(RECOMMENDED), manner).all()


def counted(sampling: Sampling, count: int = 4000) -> list[float]:
    """Return how often each token is drawn, of so many draws."""
    found = [drawn(TOKENS, SCORES, sampling, number) for number in range(count)]
    return [found.count(at) / count for at in range(len(TOKENS))]


def test_exponentials_are_as_exact_as_their_units() -> None:
    logs = -np.concatenate([[0], 1 + np.geomspace(1, 700 * LOG_UNITS, 500).astype(np.int64)])
    found = exponentials(logs)
    for log, value in zip(logs.tolist(), found.tolist(), strict=True):
        assert value == pytest.approx(exp(log / LOG_UNITS), rel=1e-12)
    assert exponentials(np.array([-(1 << 62)])).tolist() == [0.0]
    assert log_table()[-1] == 195103586505167


def test_odds_are_whole_numbers_of_the_best_ones() -> None:
    assert (odds(SCORES) / (1 << 40)).tolist() == pytest.approx((SHARES / 0.5).tolist())


@pytest.mark.parametrize("seed", [0, 1, 2**62])
def test_tokens_are_drawn_as_often_as_their_odds_say(seed: int) -> None:
    found = counted(Sampling(temperature=1, seed=seed))
    assert found == pytest.approx(SHARES.tolist(), abs=0.03)


def test_temperatures_sharpen_and_flatten() -> None:
    squared = SHARES**2 / (SHARES**2).sum()
    assert counted(Sampling(temperature=0.5)) == pytest.approx(squared.tolist(), abs=0.03)
    assert counted(Sampling(temperature=100)) == pytest.approx([0.25] * 4, abs=0.03)
    assert counted(Sampling(), 1) == [1, 0, 0, 0]


@pytest.mark.parametrize("temperature", [1e-3, 1e-4, 1e-6, 1e-12, 1e-300, 5e-324])
@pytest.mark.parametrize("more", [{}, {"top_k": 1}, {"top_k": 2}, {"top_p": 0.9}], ids=str)
def test_at_low_temperatures_the_best_token_is_drawn(
    temperature: float, more: dict[str, float]
) -> None:
    far = -np.array([12, 2, 600, 6]) * SCORE_UNITS
    cold = Sampling(temperature=temperature, **more)  # type: ignore[arg-type]
    assert {drawn(TOKENS, far, cold, number) for number in range(100)} == {1}


def test_only_the_best_are_drawn() -> None:
    best = counted(Sampling(temperature=1, top_k=2))
    assert best == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)
    assert counted(Sampling(temperature=1, top_p=0.79)) == pytest.approx(best)
    assert counted(Sampling(temperature=1, top_p=0.81))[2] > 0.1
    assert counted(Sampling(temperature=9, top_p=0.01)) == [1, 0, 0, 0]


def test_draws_are_the_same_on_every_machine() -> None:
    hot = Sampling(temperature=1.5, seed=7)
    found = [drawn(TOKENS, SCORES, hot, number) for number in range(24)]
    assert found == [1, 2, 0, 1, 1, 1, 0, 1, 0, 0, 2, 1, 0, 3, 2, 1, 0, 2, 3, 1, 2, 0, 0, 0]
    shuffled = np.array([2, 0, 3, 1])
    for number in range(50):
        at = drawn(TOKENS[shuffled], SCORES[shuffled], hot, number)
        assert shuffled[at] == drawn(TOKENS, SCORES, hot, number)


def test_what_was_read_lately_loses_odds() -> None:
    twice = Sampling(repetition_penalty=2)
    found = penalised(TOKENS, SCORES, [11, *[5] * (RECENT - 1)], twice)
    assert (odds(found) / odds(found).max()).tolist() == pytest.approx([0.25 / 0.3, 1, 0.5, 1 / 6])
    assert penalised(TOKENS, SCORES, [11, *[5] * RECENT], twice).tolist() == SCORES.tolist()


def test_seeds_choose_answers(rows: DeltaRows) -> None:
    hot = [answer(rows, temperature=2, seed=seed).text for seed in range(5)]
    assert len(set(hot)) > 2
    assert answer(rows, temperature=2, seed=3).text == hot[3]
    assert answer(rows).text == answer(rows, temperature=1, top_k=1).text
    for cold in (1e-4, 1e-300):
        assert answer(rows).text == answer(rows, temperature=cold).text


def test_where_nothing_speaks_for_a_token_it_is_drawn_by_its_frequency(rows: DeltaRows) -> None:
    best = answer(rows, "I think").tokens[0]
    hot = [answer(rows, "I think", temperature=2, seed=seed).tokens[0] for seed in range(8)]
    assert {(token.timing, token.candidates) for token in [best, *hot]} == {("no evidence", 0)}
    assert len({token.word for token in hot}) > 4
    assert all(token.probability <= best.probability for token in hot)
    assert answer(rows, "I think", temperature=2, top_k=1).tokens[0] == best


def test_a_repetition_is_avoided(rows: DeltaRows) -> None:
    plain = answer(rows, "I think").tokens
    careful = answer(rows, "I think", repetition_penalty=50).tokens
    assert plain != careful
    assert len({token.word for token in careful}) >= len({token.word for token in plain})


def test_an_answer_ends_before_a_text(rows: DeltaRows) -> None:
    whole = answer(rows)
    assert ", a political" in whole.text
    stopped = answer(rows, stop=(", a pol", "never said"))
    assert stopped.text == whole.text[: whole.text.index(" political")]
    assert stopped.stopped == "end"


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"top_k": -1},
        {"top_p": 0},
        {"top_p": 1.5},
        {"seed": -1},
        {"repetition_penalty": 0.5},
        {"stop": ("",)},
        {"stop": ("x",) * 17},
        {"stop": "happy"},
        {"stop": ("x" * 257,)},
        {"stop": (5,)},
        {"stop": 5},
        {"top_k": 1.5},
        {"seed": 1.5},
        {"rivals": 0.5},
        {"temperature": "hot"},
        {"repetition_penalty": None},
    ],
)
def test_impossible_options_are_refused_in_words(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} must be"):
        Sampling(**wrong)  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    drawing = Sampling(temperature=np.float32(1), top_k=np.int64(2), stop=["x"])  # type: ignore[arg-type]
    assert (drawing.temperature, drawing.top_k, drawing.stop) == (1, 2, ["x"])


def test_the_profile_words_draws_nothing() -> None:
    manner = Manner(sampling=Sampling(temperature=1))
    with pytest.raises(UsageError, match="this model has words"):
        profile_of(ModelSpec()).minds().continuation("a bee", manner)


def test_answers_of_the_command(tmp_path: object) -> None:
    db = str(tmp_path)
    runner = CliRunner()
    learn = ["solo", "train", str(DATA / "quick.txt"), "--db", db, "--profile", "subwords"]
    assert runner.invoke(app, learn).exit_code == 0
    ask = ["solo", "prompt", "The quick", "--db", db, "--max-tokens", "6", "--json"]
    hot = runner.invoke(app, [*ask, "--temperature", "3", "--n", "4", "--seed", "5"])
    texts = [json.loads(line)["text"] for line in hot.stdout.splitlines()]
    assert len(texts) == 4
    assert len(set(texts)) > 1
    again = runner.invoke(app, [*ask, "--temperature", "3", "--seed", "8"])
    assert json.loads(again.stdout)["text"] == texts[3]
    alike = runner.invoke(app, [*ask, "--n", "2"])
    assert alike.exit_code == 2
    assert "--temperature" in alike.stderr
