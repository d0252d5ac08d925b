"""How an evaluation is shown: with more measures for a brain of subwords than for one of words."""

import msgspec
import pytest

from giaann_p2p.cli.present import score_json, score_line
from giaann_p2p.model.evaluate import Score
from giaann_p2p.model.subwords.basis import Basis
from giaann_p2p.model.subwords.evaluate import Tier, TokenScore


def test_words_have_one_accuracy() -> None:
    score = Score(sentences=2, predicted=10, right_words=4, silent=1)
    assert score_line(score) == (
        "accuracy 0.4000 (4 of 10 tokens right, 1 without a candidate, 0 unreached) "
        "on 2 sentences; 0 tokens/s"
    )
    assert "accuracy_strict" not in score_json(score)


def test_mix_has_several_and_says_what_choices_rest_on() -> None:
    score = TokenScore(
        sentences=2, predicted=10, right_words=4, right_given=5, right_strict=3, right_top5=8
    )
    score.right_top5_given, score.right_top5_strict = 9, 7
    score.tiers[Basis.OWN] = Tier(6, 3)
    score.tiers[Basis.ANY] = Tier(4, 1)
    first, second = score_line(score).splitlines()
    assert first.endswith(
        " on 2 texts; 0 tokens/s; with columns given 0.5000, strict 0.3000, "
        "among the best five 0.8000 (given 0.9000, strict 0.7000)"
    )
    assert second == "choices rest on: own rows 6 (0.5000 right), any column 4 (0.2500 right)"
    score.bits, score.predicted_bytes = 40.0, 32
    score.bits_given, score.bits_strict = 20.0, 80.0
    assert (
        "; 1.250 bits per byte (given 0.625, strict 2.500), perplexity 16.0 (given 4.0, strict "
        "256.0)\n"
    ) in score_line(score)
    found = msgspec.json.decode(msgspec.json.encode(score_json(score)))
    assert (found["bits_per_byte"], found["perplexity"]) == (1.25, pytest.approx(16))
    assert found["tiers"]["own rows"] == {"choices": 6, "right": 3}
    assert (found["accuracy_strict"], found["accuracy_top5"]) == (0.3, 0.8)
    assert (found["accuracy_top5_given"], found["accuracy_top5_strict"]) == (0.9, 0.7)
    assert (found["bits_per_byte_given"], found["bits_per_byte_strict"]) == (0.625, 2.5)
    assert found["perplexity_given"] == pytest.approx(4)
    assert found["perplexity_strict"] == pytest.approx(256)


def test_lif_is_given_columns_and_has_none_of_these() -> None:
    score = TokenScore(predicted=10, right_words=4, right_given=4, columns="given")
    assert "strict" not in score_line(score)
    found = score_json(score)
    assert (found["accuracy_strict"], found["accuracy_top5"], found["bits_per_byte"]) == (None,) * 3
    assert (found["accuracy_top5_given"], found["bits_per_byte_given"]) == (None, None)
