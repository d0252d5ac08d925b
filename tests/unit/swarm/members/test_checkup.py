"""Whether all replicas hold the same."""

import pytest

from giaann_p2p.model.digest import added, readable
from giaann_p2p.swarm.members.checkup import Damage, DigestsOf, Report, judged
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.messages import Digest

A, B, C, D = (Peer(bytes([letter]) * 32) for letter in b"abcd")


def digest(chunks: int, content: int, state: bytes = b"r") -> Digest:
    return Digest(state, bytes([chunks]) * 16, content.to_bytes(32, "little"), 2, 10)


NONE = Digest(b"a", b"", b"", 0, 0)
SYNCING = digest(9, 9, b"s")


def judge(told: DigestsOf, shards: int = 2, replicas: int = 3) -> Report:
    return judged(told, shards, replicas, [])


def test_replicas_that_agree_add_up() -> None:
    same = {0: digest(1, 100), 1: digest(1, 7)}
    found = judge({A: same, B: same, C: {**same, 1: digest(1, 7, b"d")}, D: {0: NONE, 1: SYNCING}})
    assert found.agrees
    assert (found.rows, found.connections) == (4, 20)
    assert found.digest == readable(added(iter([107])))
    assert found.under == found.silent == []


@pytest.mark.parametrize(
    ("told", "lost", "apart", "under", "damaged"),
    [
        ({A: {0: digest(1, 1)}}, [1], [], [0], []),
        ({}, [0, 1], [], [], []),
        ({A: {0: digest(1, 1), 1: SYNCING}, B: {1: NONE}}, [1], [], [0], []),
        (
            {A: {0: digest(1, 1), 1: digest(1, 1)}, B: {0: digest(2, 5), 1: digest(1, 1)}},
            [],
            [0],
            [0, 1],
            [],
        ),
        (
            {peer: {0: digest(1, 1), 1: digest(1, 1 + (peer == B))} for peer in (A, B, C)},
            [],
            [],
            [],
            [Damage(1, [B])],
        ),
        (
            {A: {0: digest(1, 1), 1: digest(1, 1)}, B: {0: digest(1, 1), 1: digest(1, 2)}},
            [],
            [],
            [0, 1],
            [Damage(1, [A, B])],
        ),
        (
            {
                A: {0: digest(1, 1), 1: digest(1, 1)},
                B: {0: digest(2, 5), 1: digest(1, 1)},
                C: {0: digest(2, 6), 1: digest(1, 1)},
            },
            [],
            [0],
            [],
            [Damage(0, [B, C])],
        ),
    ],
)
def test_what_is_wrong_is_named(
    told: DigestsOf, lost: list[int], apart: list[int], under: list[int], damaged: list[Damage]
) -> None:
    found = judge(told)
    assert (found.lost, found.apart, found.under, found.damaged) == (lost, apart, under, damaged)
    assert not found.agrees
    assert found.digest == ""


def test_who_told_nothing_is_passed_on() -> None:
    same = {0: digest(1, 1)}
    found = judged({A: same, B: same}, 1, 2, [C])
    assert found.agrees
    assert found.silent == [C]
