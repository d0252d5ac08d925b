"""The timeout of calls to nodes of the DHT follows the usual time of an answer."""

import pytest

from giaann_p2p.net.hive.answer_times import AnswerTimes
from giaann_p2p.swarm.wire.identity import Peer

SHORTEST, LONGEST, MOST, NOW = 1.5, 3.5, 64, 100.0
NODES = [Peer(bytes([number]) * 32) for number in range(MOST + 1)]


def after(*took: float) -> AnswerTimes:
    """Return the times after an answer of each node, which took these seconds."""
    answers = AnswerTimes(SHORTEST, LONGEST, MOST)
    for node, seconds in zip(NODES, took, strict=False):
        answers.answered(node, seconds, NOW)
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


def test_slow_liars_that_are_fewer_than_half_do_not_prolong_it_however_often_they_answer() -> None:
    answers = after(0.01, 3.4, 0.02, 3.4, 0.01)
    for _ in range(100):
        answers.answered(NODES[1], 3.4, NOW)
    assert answers.timeout == SHORTEST


def test_if_all_nodes_become_too_slow_the_timeout_grows() -> None:
    answers = after(*[0.01] * 5)
    for node in NODES[:3]:
        answers.silent(node, answers.timeout)
    assert answers.timeout == LONGEST
    answers.answered(NODES[0], 0.01, NOW)
    assert answers.timeout == SHORTEST


def test_nodes_that_never_answered_make_no_difference() -> None:
    answers = after()
    for node in NODES[:5]:
        answers.silent(node, SHORTEST)
        assert not answers.is_slow(node, NOW)
    assert answers.timeout == SHORTEST


def test_only_the_nodes_called_last_count() -> None:
    assert after(*[2.0] * 30, *[0.01] * 17).timeout == SHORTEST
    assert after(*[2.0] * 30, *[0.01] * 15).timeout == LONGEST


def test_a_silent_node_is_slow_for_a_minute_and_a_few_calls_after_its_last_answer() -> None:
    answers = after(0.1)
    for _ in range(4):
        answers.silent(NODES[0], SHORTEST)
        assert [answers.is_slow(NODES[0], NOW + later) for later in (59, 60)] == [True, False]
    answers.silent(NODES[0], SHORTEST)
    assert not answers.is_slow(NODES[0], NOW)
    answers.answered(NODES[0], 0.1, NOW + 70)
    assert answers.is_slow(NODES[0], NOW + 71)


def test_notes_are_bounded() -> None:
    answers = after(*[0.1] * (MOST + 1))
    assert [answers.is_slow(node, NOW) for node in NODES[:2]] == [False, True]
