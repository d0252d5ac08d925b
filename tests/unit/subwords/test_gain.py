"""What a row adds to scores: the logarithms of the formulas in `mix`."""

import math

import numpy as np
import pytest

from giaann_p2p.model.sequence import Ints
from giaann_p2p.model.subwords.counts import TOKENS, Tally, tallied
from giaann_p2p.model.subwords.frequencies import frequencies_of, uniform
from giaann_p2p.model.subwords.gain import SCORE_UNITS, TENTHS, backed_off, gains_of
from giaann_p2p.model.subwords.logarithm import LOG_UNITS
from giaann_p2p.model.subwords.tokeniser import VOCABULARY
from tests.plain.subwords import ADDED, DISCOUNT

OCCURRENCES = {7: 40, 11: 2, 13: 900, 290: 1}
ANYWHERE, OWN = {7: 30, 11: 1, 13: 9}, {7: 4, 13: 1}


def tally(*times: dict[int, int]) -> Tally:
    """Return the tally of counts at distances 1, 2 ..."""
    found = [(distance, *one) for distance, some in enumerate(times, 1) for one in some.items()]
    return tally_of(*np.array(found, np.int64).reshape(-1, 3).T)


def tally_of(distance: Ints, token: Ints, times: Ints) -> Tally:
    return tallied(distance * TOKENS + token, times)


def u(token: int) -> float:
    total = sum(OCCURRENCES.values()) + ADDED * VOCABULARY
    return (OCCURRENCES.get(token, 0) + ADDED) / total


def probability(times: dict[int, int], token: int, below: float) -> float:
    if not times:
        return below
    seen = max(times.get(token, 0) - DISCOUNT, 0)
    return (seen + DISCOUNT * len(times) * below) / sum(times.values())


def test_frequencies_are_those_of_the_formula_and_add_up_to_one() -> None:
    found = frequencies_of(tally(OCCURRENCES).counts(1))
    for token in [*OCCURRENCES, 0, VOCABULARY - 1]:
        assert found.share[token] == pytest.approx(u(token), rel=1e-15)
        assert found.log[token] / LOG_UNITS == pytest.approx(math.log(u(token)), abs=1e-12)
    assert math.fsum(found.share.tolist()) == pytest.approx(1, abs=1e-12)
    assert uniform().share[0] == pytest.approx(1 / VOCABULARY)
    assert (uniform().share == uniform().share[0]).all()


def test_gains_of_both_rows_make_the_odds_of_each_token_at_each_distance() -> None:
    share = frequencies_of(tally(OCCURRENCES).counts(1)).share
    wide_counts = [ANYWHERE, {}, {5: 2}, {7: 3, 11: 3}, ANYWHERE]
    near_counts = [OWN, OWN, {}, {11: 2}, {13: 2, 290: 1}]
    anywhere, own = tally(*wide_counts), tally(*near_counts)
    wide = gains_of(anywhere, share[anywhere.token])
    near = gains_of(own, backed_off(anywhere, own, share[own.token]))
    for at, tenths in enumerate(TENTHS):
        raised = dict.fromkeys([*OCCURRENCES, 5], wide[at].base + near[at].base)
        for gains in (wide[at], near[at]):
            assert (gains.gain > 0).all()
            for token, gain in zip(gains.token.tolist(), gains.gain.tolist(), strict=True):
                raised[token] += gain
        for token, found in raised.items():
            below = probability(wide_counts[at], token, u(token))
            odds = probability(near_counts[at], token, below) / u(token)
            assert found / SCORE_UNITS == pytest.approx(tenths / 10 * math.log(odds), abs=1e-11)


def test_a_row_that_nothing_followed_adds_nothing() -> None:
    none, own = tally(), tally(OWN, {}, {5: 2})
    for base, token, gain in gains_of(none, none.times / 1):
        assert (base, len(token), len(gain)) == (0, 0, 0)
    below = np.array([0.25, 0.5, 0.125])
    assert backed_off(none, own, below).tolist() == below.tolist()


def parts(found: Tally) -> list[tuple[list[int], list[int], int]]:
    return [
        (one.token.tolist(), one.times.tolist(), one.total)
        for one in map(found.counts, range(1, 6))
    ]


def test_counts_are_added_up_by_token_and_distance() -> None:
    found = tally_of(
        *np.array([[1, 3, 1], [1, 3, 4], [1, 5, 2], [4, 3, 1], [4, 9, 1], [4, 9, 1]]).T
    )
    nothing = ([], [], 0)
    wanted = [([3, 5], [5, 2], 7), nothing, nothing, ([3, 9], [1, 2], 3), nothing]
    assert parts(found) == wanted
    asked = np.array([TOKENS + 3, TOKENS + 4, 3 * TOKENS + 3, 4 * TOKENS + 9])
    assert found.of(asked).tolist() == [5, 0, 0, 2]
    assert found.of(asked[:1]).tolist() == [5]


def test_connections_of_any_order_are_counted_alike() -> None:
    draw = np.random.default_rng(7)
    token = draw.choice([0, 3, 65_535, 65_536, 131_071, 131_072, VOCABULARY - 1], 400)
    distance, times = draw.integers(1, 6, 400), draw.integers(1, 9, 400)
    wanted: list[dict[int, int]] = [{}, {}, {}, {}, {}]
    for at, to, many in zip(distance.tolist(), token.tolist(), times.tolist(), strict=True):
        wanted[at - 1][to] = wanted[at - 1].get(to, 0) + many
    found = parts(tally_of(distance, token, times))
    assert found == [
        (sorted(one), [one[to] for to in sorted(one)], sum(one.values())) for one in wanted
    ]
