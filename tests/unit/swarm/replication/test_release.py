"""Deltas that are let go of: of which shards, of which chunks, and on whose word."""

import pytest

from giaann_p2p.swarm.replication.peer_reports import PeerReport
from giaann_p2p.swarm.wire.actions import Release
from giaann_p2p.swarm.wire.replica import ReplicaState
from tests.helpers_swarm import (
    JOB,
    NOW,
    SETTINGS,
    SHARDS,
    A,
    Around,
    B,
    C,
    D,
    Side,
    applied,
    make_ready,
    store,
    update,
)

ALL = list(range(SHARDS))
EVERY = SETTINGS.release_every
MOMENT = SETTINGS.word_counts


def side_of(*members: bytes, chunks: tuple[int, ...] = ()) -> Side:
    """Return a peer that has been ready for some time."""
    side = Side(A, Around(*map(type(A), members)), store(ALL, chunks))
    side.tick(NOW)
    make_ready(side.core.replicas)
    return side


def word(side: Side, peer: bytes, text: str, asked: float = NOW, numbers: list[int] = ALL) -> None:
    """Let a peer have said something like "r012" of some shards."""
    for shard in numbers:
        said = PeerReport(ReplicaState(text[0]), applied(*map(int, text[1:])), asked)
        side.core.reports.heard(type(A)(peer), shard, said)


def released(side: Side, now: float) -> dict[int, list[int]]:
    """Return the chunks that are released, by shard."""
    side.done.clear()
    side.tick(now)
    told = [part for one in side.told(Release) for part in one.parts]
    return {n: list(chunks.of(JOB)) for numbers, chunks in told for n in numbers.tolist()}


def kept(side: Side) -> list[list[int]]:
    return [list(side.store.retained_for(shard).of(JOB)) for shard in ALL]


def of_all(*chunks: int) -> dict[int, list[int]]:
    return {shard: list(chunks) for shard in ALL}


def test_deltas_are_released_when_everybody_has_them() -> None:
    side = side_of(A, B, C, chunks=(0, 1, 2))
    assert released(side, NOW + 2 * EVERY) == {}  # who knows
    word(side, B, "r012", NOW - 1000)  # an old word says what its peer has at least
    word(side, C, "s12")
    assert released(side, NOW + 2 * EVERY + 1) == {}  # not again so soon
    assert released(side, NOW + 3 * EVERY) == of_all(1, 2)
    assert kept(side) == [[0]] * 4


def test_who_may_come_back_must_have_them_too() -> None:
    side = side_of(A, B, C, chunks=(0, 1))
    for peer in (B, C):
        word(side, peer, "r01")
    side.around.gone_with[2] = [D]
    assert released(side, NOW + 2 * EVERY) == {0: [0, 1], 1: [0, 1], 3: [0, 1]}
    word(side, D, "r1", numbers=[2])
    assert released(side, NOW + 3 * EVERY) == of_all(0, 1) | {2: [1]}
    assert kept(side) == [[], [], [0], []]


def test_where_nothing_is_kept_nothing_is_looked_through_until_others_come_or_go() -> None:
    side = side_of(A, B, chunks=(0, 1))
    word(side, B, "r01")
    assert released(side, NOW + 60) == of_all(0, 1)
    assert not side.store.retains
    assert released(side, NOW + 90) == {}
    side.around.changes += 1
    assert released(side, NOW + 120) == of_all(0, 1)
    assert released(side, NOW + 150) == {}
    side.store.apply([update(2, *ALL)])
    word(side, B, "r012")
    assert released(side, NOW + 180) == of_all(0, 1, 2)


def test_each_shard_is_looked_at_by_itself() -> None:
    side = side_of(A, B, chunks=(0, 1))
    word(side, B, "r01")
    word(side, B, "s1", numbers=[2], asked=NOW + 1)
    assert released(side, NOW + 2 * EVERY) == of_all(0, 1) | {2: [1]}
    assert kept(side) == [[], [], [0], []]
    word(side, B, "r01", asked=NOW + 2)
    released(side, NOW + 3 * EVERY)
    assert kept(side) == [[], [], [], []]
    assert len(side.store.retained(JOB)) == 0


@pytest.mark.parametrize("text", ["a", "s", "d"])
def test_who_is_about_to_come_or_go_is_not_waited_for_if_it_said_so_just_now(text: str) -> None:
    side = side_of(A, B, C, chunks=(0, 1))
    word(side, B, "r0")
    word(side, C, text, asked=NOW + EVERY - MOMENT)
    assert released(side, NOW + EVERY) == of_all(0)
    longer_ago = side_of(A, C, chunks=(0,))
    word(longer_ago, C, text, asked=NOW + EVERY - MOMENT - 0.1)
    assert released(longer_ago, NOW + EVERY) == {}


def test_who_drains_is_waited_for_until_it_has_seen_that_it_may_go() -> None:
    side = side_of(A, B, C, chunks=(0, 1))
    word(side, B, "r01")
    word(side, C, "d1", asked=NOW + EVERY)
    assert released(side, NOW + EVERY) == of_all(1)


def test_who_began_anew_has_what_it_had_or_takes_a_whole_shard() -> None:
    side = side_of(A, B, chunks=(0,))
    word(side, B, "r0")
    side.core.restarted(B)
    assert released(side, NOW + EVERY) == of_all(0)


def test_nothing_is_released_while_something_is_lacking_here() -> None:
    side = side_of(A, B, C, chunks=(0,))
    word(side, B, "r0")
    word(side, C, "r01", numbers=[3])
    word(side, C, "r0", numbers=[0, 1, 2])
    assert released(side, NOW + EVERY) == {0: [0], 1: [0], 2: [0]}
    side.store.apply([update(1, 3)])
    assert released(side, NOW + 2 * EVERY)[3] == [0]


def test_who_is_not_ready_or_only_just_releases_nothing() -> None:
    """Others may think that it has nothing, and have let go of what it lacks."""
    side = Side(A, Around(*map(type(A), (A, B, C))), store(ALL, (0,)))
    side.tick(NOW)
    for peer in (B, C):
        word(side, peer, "s0")
    assert released(side, NOW + EVERY) == {}
    since = NOW + 2 * EVERY - 2 * MOMENT
    for shard in ALL:
        side.core.replicas.caught_up(shard, since if shard else since - 1)
    assert released(side, NOW + 2 * EVERY) == {0: [0]}
    assert released(side, NOW + 3 * EVERY) == of_all(0)


def test_who_drains_releases_nothing() -> None:
    side = side_of(A, B, chunks=(0,))
    word(side, B, "r0")
    side.around.capacities = dict.fromkeys(map(type(A), (B, C, D)), 1 << 30)
    side.around.changes += 1
    side.do(side.core.leave(NOW + 1), NOW + 1)
    assert released(side, NOW + EVERY) == {}


def test_what_peers_said_who_have_no_part_in_a_shard_any_more_is_forgotten() -> None:
    side = Side(A, Around(A, B, C), store(ALL, (0,)))
    side.around.gone_with[1] = [D]
    for peer in (B, D):
        word(side, peer, "s0")
    side.tick(NOW + EVERY)
    known = [side.core.reports.of(D, shard) is not None for shard in ALL]
    assert known == [False, True, False, False]
    assert side.core.reports.of(B, 0) is not None
