"""The yardstick of n-grams: a tiny example by hand, and probabilities that sum to 1."""

import math
from fractions import Fraction

import numpy as np
import pytest

from giaann_p2p.model.subwords.tokeniser import VOCABULARY
from tests.benchmarks.kneser_ney import Grams, KneserNey

A, B, C, D = 5, 7, 9, 11
TEXTS = [[A, B, C], [A, B, D], [C, B, C]]
"""Pairs: AB twice, BC twice, BD, CB. Before B came A and C, before C and before D only B."""
HALF = Fraction(1, 2)
ALL = np.arange(VOCABULARY)


def alone(befores: int) -> Fraction:
    """What a token has after nothing: 4 kinds of pairs, and B, C and D have something before."""
    share = Fraction(befores) - HALF if befores else Fraction(0)
    return share / 4 + HALF * 3 / 4 / VOCABULARY


def test_a_pair_as_computed_by_hand() -> None:
    model = KneserNey(Grams(TEXTS, 2), 2, 0.5)
    after_b = {C: (2 - HALF) / 3, D: (1 - HALF) / 3, A: Fraction(0)}
    befores = {A: 0, C: 1, D: 1}
    for token, share in after_b.items():
        wanted = share + HALF * 2 / 3 * alone(befores[token])
        assert model.probability([B], token) == pytest.approx(float(wanted), rel=1e-12)
    assert model.probability([], B) == pytest.approx(float(alone(2)), rel=1e-12)
    assert model.probability([D], B) == model.probability([], B)  # nothing ever followed D
    assert model.probability([C, A, B], C) == model.probability([B], C)


def test_below_the_highest_order_counts_are_of_what_came_before() -> None:
    model = KneserNey(Grams(TEXTS, 3), 3, 0.5)
    # After B, C came behind A and behind C; D only behind A: 2 and 1 of 3.
    after_b = (2 - HALF) / 3 + HALF * 2 / 3 * alone(1)
    # After A B, C and D came once each.
    wanted = (1 - HALF) / 2 + HALF * 2 / 2 * after_b
    assert model.probability([A, B], C) == pytest.approx(float(wanted), rel=1e-12)
    assert model.probability([D, B], C) == pytest.approx(float(after_b), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_probabilities_sum_to_one_and_the_best_are_the_best(order: int) -> None:
    draw = np.random.default_rng(3)
    texts = [draw.geometric(0.2, 30).tolist() for _ in range(20)]
    model = KneserNey(Grams(texts, 5), order, 0.75)
    for text in [*texts[:5], [], [999], [1, 999, 1], [999, 1]]:
        found = model.probabilities(text, ALL)
        assert math.fsum(found.tolist()) == pytest.approx(1, abs=1e-9)
        assert found.min() > 0
        order_of = np.argsort(-found, kind="stable")
        assert model.best(text, 5) == order_of[:5].tolist()


def test_no_texts_hold_all_tokens_for_equal() -> None:
    model = KneserNey(Grams([], 3), 3, 0.75)
    assert model.probability([A, B], C) == 1 / VOCABULARY
    assert model.best([A]) == [0]
