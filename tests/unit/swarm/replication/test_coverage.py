"""Ready, let go, released: each on which evidence."""

import pytest

from giaann_p2p.swarm.replication.coverage import (
    Words,
    all_ready,
    caught_up,
    covered,
    everywhere,
    may_begin,
)
from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.replica import ReplicaState
from tests.helpers_swarm import JOB, NOW, A, B, C, applied


def words(**told: str) -> Words:
    """Read "r012": ready, with chunks 0, 1 and 2."""
    return {Peer(name.encode() * 32): word(text) for name, text in told.items()}


def word(text: str) -> PeerReport:
    return PeerReport(ReplicaState(text[0]), applied(*map(int, text[1:])), NOW)


@pytest.mark.parametrize(
    ("told", "is_ready"),
    [
        ({}, False),
        ({"A": "r01"}, True),
        ({"A": "r0"}, True),
        ({"A": "d01"}, True),  # it serves still
        ({"A": "s01"}, False),  # it may lack what a ready one has
        ({"A": "a"}, False),
        ({"A": "r012"}, False),
        ({"A": "r012", "B": "r01"}, True),  # one is enough
        ({"A": "s", "B": "a"}, False),
    ],
)
def test_caught_up_with_a_ready_one(told: dict[str, str], is_ready: bool) -> None:
    assert caught_up(applied(0, 1), words(**told)) is is_ready


@pytest.mark.parametrize(
    ("told", "quorum", "begins"),
    [
        ({}, 1, True),  # alone in the swarm
        ({}, 2, False),
        ({"B": "s"}, 2, True),
        ({"B": "s01"}, 2, True),
        ({"B": "s012"}, 2, False),  # get that first
        ({"B": "a"}, 2, False),  # it has not begun to hold it
        ({"D": "s"}, 2, False),  # it is no owner
        ({"B": "s", "D": "s2"}, 2, False),  # but what it has counts
        ({"B": "s", "C": "a2"}, 2, False),
        ({"B": "r"}, 2, False),  # there is somebody to catch up with
        ({"B": "s", "D": "d"}, 2, False),
        ({"B": "s"}, 3, False),
        ({"B": "s", "C": "s1"}, 3, True),
    ],
)
def test_beginning_where_nobody_is_ready(told: dict[str, str], quorum: int, begins: bool) -> None:
    heard = words(**told)
    owners = [heard[peer] for peer in (B, C) if peer in heard]
    assert may_begin(applied(0, 1), heard, owners, quorum) is begins


@pytest.mark.parametrize(
    ("told", "is_covered"),
    [
        ({}, False),
        ({"A": "r01"}, False),
        ({"A": "r01", "B": "r01"}, True),  # C has proved it, and is silent now
        ({"A": "r01", "B": "r012", "C": "r01"}, True),
        ({"A": "r01", "B": "r01", "C": "s01"}, True),  # it was restarted
        ({"A": "r01", "B": "r01", "C": "s0"}, False),  # it has lost something
        ({"A": "r01", "B": "r01", "C": "a"}, False),
        ({"A": "r01", "B": "r01", "C": "d01"}, False),  # it wants to let go, too
        ({"A": "r01", "B": "r0"}, False),
        ({"A": "r01", "B": "s01", "C": "s01"}, False),
        ({"A": "r01", "D": "r01"}, False),  # D owns nothing
    ],
)
def test_covered_by_a_quorum_of_owners(told: dict[str, str], is_covered: bool) -> None:
    assert covered(applied(0, 1), words(**told), [A, B, C], 2, NOW) is is_covered


def test_what_was_said_too_long_ago_covers_nothing_but_may_contradict() -> None:
    assert not covered(applied(0), words(A="r0", B="r0"), [A, B, C], 2, NOW + 1)
    late = words(A="r0", B="r0")
    early = {C: PeerReport(ReplicaState.DRAINING, applied(0), NOW - 30)}
    assert covered(applied(0), late, [A, B, C], 2, NOW)
    assert not covered(applied(0), {**late, **early}, [A, B, C], 2, NOW)


def test_nothing_is_covered_where_there_are_no_owners() -> None:
    assert not covered(applied(), words(A="r"), [], 1, NOW)


def test_nothing_is_covered_by_fewer_owners_than_a_quorum() -> None:
    assert covered(applied(0), words(A="r0"), [A], 1, NOW)
    assert not covered(applied(0), words(A="r0"), [A], 2, NOW)


@pytest.mark.parametrize(
    ("told", "is_ready"),
    [
        ({}, False),
        ({"A": "r"}, False),
        ({"A": "r", "B": "r01"}, True),
        ({"A": "r", "B": "s01"}, False),
        ({"A": "r", "B": "d"}, False),
        ({"A": "r", "B": "r", "C": "s"}, True),  # C owns nothing
    ],
)
def test_owners_that_are_all_ready(told: dict[str, str], is_ready: bool) -> None:
    assert all_ready(words(**told), [A, B]) is is_ready


@pytest.mark.parametrize(
    ("told", "chunks"),
    [
        ([], [0, 1, 2]),  # nobody else could lack anything
        (["r012"], [0, 1, 2]),
        (["s01", "r12"], [1]),
        (["d0"], [0]),  # who drains is kept up with the others
        (["r01", "d0"], [0]),
        (["d"], [0, 1, 2]),
        (["r"], []),  # it may let go of something itself
        (["d3"], []),
        (["r012", None], []),  # who knows what it has
        (["r01", "a"], [0, 1]),  # who has nothing takes the shard whole
        (["r01", "s"], [0, 1]),
        (["a"], [0, 1, 2]),
        (["r012", "s3"], []),  # what is not here is yet to come
        (["r0123"], []),
    ],
)
def test_what_is_everywhere(told: list[str | None], chunks: list[int]) -> None:
    words = [(text and word(text)) or None for text in told]
    assert list(everywhere(applied(0, 1, 2), words, NOW).of(JOB)) == chunks


@pytest.mark.parametrize("text", ["a", "s", "d"])
def test_who_was_about_to_come_or_go_may_be_there_by_now(text: str) -> None:
    assert list(everywhere(applied(0), [word(text)], NOW).of(JOB)) == [0]
    assert list(everywhere(applied(0), [word(text)], NOW + 1).of(JOB)) == []
