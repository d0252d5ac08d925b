"""The timeout of calls to nodes of the DHT follows the usual time of an answer."""

import pytest

from giaann_p2p.net.hive.answer_times import AnswerTimes
from giaann_p2p.swarm.wire.identity import Peer

SHORTEST, LONGEST, MOST = 1.5, 3.5, 64
NODES = [Peer(bytes([number]) * 32) for number in range(MOST + 1)]


def after(*took: float) -> AnswerTimes:
    """Return the times after answers that took these seconds, of one node after the other."""
    answers = AnswerTimes(SHORTEST, LONGEST, MOST)
    for number, seconds in enumerate(took):
        answers.answered(NODES[number % len(NODES)], 100.0 + number - seconds, 100.0 + number)
    return answers


@pytest.mark.parametrize(
    ("usual", "allowed"), [(0.01, SHORTEST), (0.4, 2.0), (0.5, 2.5), (2.0, LONGEST)]
)
def test_an_answer_may_take_five_times_as_long_as_usual_within_bounds(
    usual: float, allowed: float
) -> None:
    assert after(*[usual] * 5).timeout == pytest.approx(allowed)


def test_before_the_first_answer_the_timeout_is_short() -> None:
    assert after().timeout == SHORTEST


def test_slow_liars_that_are_fewer_than_half_do_not_prolong_it() -> None:
    assert after(*[0.01, 3.4, 0.02, 3.4, 0.01] * 8).timeout == SHORTEST


def test_what_was_usual_is_forgotten_after_some_answers() -> None:
    assert after(*[2.0] * 100, *[0.01] * 17).timeout == SHORTEST


def test_who_has_answered_since_when_is_noted_of_the_latest_nodes() -> None:
    answers = after(*[0.1] * (MOST + 1))
    assert answers.last == 100.0 + MOST
    assert not answers.has_answered(NODES[0], 0.0)  # there were too many
    assert answers.has_answered(NODES[1], 101.0)
    assert not answers.has_answered(NODES[1], 101.1)
