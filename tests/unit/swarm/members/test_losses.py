"""What is lost is told by those who had it, and by no lone liar."""

import pytest

from giaann_p2p.swarm.members.directory import Directory
from giaann_p2p.swarm.members.losses import NONE, losses
from giaann_p2p.swarm.wire.record import Announcement, Missing, signed
from tests.unit.swarm.helpers_records import ALL, NOW, PEERS, RULES, SWARM, said, some


def _directory(*told: tuple[tuple[int, ...], tuple[int, ...]]) -> Directory:
    """Make one of peers that each serve some shards, and miss some."""
    made = Directory(SWARM, lambda: RULES)
    for peer, (ready, missing) in zip(PEERS, told, strict=False):
        gone = Missing(some(*missing), 100 * len(missing), int(NOW) - 60)
        made.merge(said(peer, ready, missing=gone), NOW)
    return made


def test_where_nobody_misses_anything_nothing_is_lost() -> None:
    assert losses(_directory(((1,), ()), ((1,), ())), NOW) is NONE


def test_what_most_holders_miss_is_lost() -> None:
    found = losses(_directory(((1, 2), (1, 2)), ((1,), (1,)), ((2,), ())), NOW)
    assert found.shards == [1]
    assert (found.connections, found.seen) == (200, int(NOW) - 60)
    assert found.words(NOW) == (
        "1 shard held 200 connections or more, last seen 60 s ago, and no live peer has all of them"
    )
    assert not NONE.words(NOW)


def test_what_nobody_has_is_lost_by_the_word_of_one_who_had_it() -> None:
    assert losses(_directory(((), (3,)), ((1,), ())), NOW).shards == [3]


@pytest.mark.parametrize("liars", [0, 1])
def test_one_of_three_holders_is_not_believed(liars: int) -> None:
    told = [((5,), (5,))] * liars + [((5,), ())] * (3 - liars)
    assert not losses(_directory(*told), NOW)


def test_those_who_do_not_answer_have_nothing_and_miss_nothing() -> None:
    made = _directory(((5,), ()), ((5,), (5,)))
    assert losses(made, NOW, silent=[PEERS[0].peer]).shards == [5]
    assert not losses(made, NOW, silent=[PEERS[1].peer])


def _computing(made: Directory, seen: float) -> Directory:
    """Let a compute peer tell when it saw somebody serve shards."""
    told = Announcement(
        swarm_id=SWARM,
        peer=PEERS[-1].peer,
        role="compute",
        incarnation=1,
        sequence=1,
        issued=int(NOW),
        missing=Missing(seen=int(seen)),
    )
    made.merge(signed(PEERS[-1], told), NOW)
    return made


def test_where_no_storage_peer_is_left_all_is_lost_by_the_word_of_a_compute_peer() -> None:
    assert losses(_computing(_directory(), 0), NOW) is NONE
    made = _computing(_directory(), NOW - 40)
    found = losses(made, NOW)
    assert found.shards == list(ALL)
    assert found.words(NOW) == "8 shards, last seen 40 s ago, and no live peer has all of them"
    assert losses(made, NOW, silent=[PEERS[-1].peer]) is NONE


def test_a_compute_peer_is_not_asked_where_a_storage_peer_has_something() -> None:
    assert losses(_computing(_directory(((2,), ())), NOW - 40), NOW) is NONE
    cold = Directory(SWARM, lambda: RULES)
    cold.merge(said(PEERS[0], (), cold=(1,)), NOW)
    assert losses(_computing(cold, NOW - 40), NOW) is NONE
    lost = losses(_computing(_directory(((1,), (3,))), NOW - 40), NOW)
    assert (lost.shards, lost.seen) == ([3], int(NOW) - 60)
