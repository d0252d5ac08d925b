"""The shards of a peer, as placement comes and goes."""

import pytest

from giaann_p2p.swarm.replication.replicas import Replicas
from giaann_p2p.swarm.wire.identity import Peer
from giaann_p2p.swarm.wire.replica import ReplicaState
from tests.helpers_swarm import NOW, A, B, C, make_ready, states


class Told:
    """A placement that a test made up: whose each shard is."""

    def __init__(self, *owners: str) -> None:
        self._owners = [tuple(Peer(letter.encode() * 32) for letter in one) for one in owners]

    def owners(self, shard: int) -> tuple[Peer, ...]:
        return self._owners[shard]

    def excluded(self, shard: int) -> frozenset[Peer]:
        return frozenset({A}) if shard == 1 and A not in self._owners[1] else frozenset()


def test_what_the_disk_holds_is_syncing() -> None:
    replicas = Replicas(A, 4, [1, 3])
    assert states(replicas) == "asas"
    assert repr(replicas) == "<Replicas: 2 syncing, 0 ready, 0 draining>"
    assert replicas.held.tolist() == [1, 3]
    assert [replicas.holds(shard) for shard in range(4)] == [False, True, False, True]
    assert replicas.owners(0) == ()
    assert not replicas.wanted(1)


def test_what_others_own_by_now_is_not_waited_for() -> None:
    replicas = Replicas(A, 4, [1, 3])
    assert replicas.catching_up == [1, 3]  # until it is known who owns what
    replicas.place(Told("AB", "AB", "BC", "BC"), NOW)
    assert replicas.catching_up == replicas.own.tolist() == [0, 1]
    replicas.caught_up(0, NOW)
    replicas.offer(2, NOW)
    assert replicas.catching_up == [1]


def test_a_shard_that_is_here_is_owned_once_a_placement_says_so() -> None:
    replicas = Replicas(A, 4, [1, 3])
    replicas.place(Told("AB", "AB", "BC", "BC"), NOW)
    assert replicas.own.tolist() == [0, 1]
    replicas.place(Told("AB", "AB", "BC", "AB"), NOW)
    assert replicas.own.tolist() == [0, 1, 3]
    assert states(replicas) == "ssas"


def test_placement_begins_and_ends_things() -> None:
    replicas = Replicas(A, 4, [1, 3])
    assert replicas.place(Told("AB", "AB", "BC", "BC"), NOW).tolist() == [0]  # 1 is here
    assert states(replicas) == "ssas"
    assert [replicas.wanted(shard) for shard in range(4)] == [True, True, False, False]
    assert replicas.owners(2) == (B, C)
    replicas.caught_up(0, NOW)
    replicas.caught_up(1, NOW)
    assert replicas.own.tolist() == [0, 1]
    assert replicas.place(Told("AB", "BC", "AC", "BC"), NOW + 5).tolist() == [2]
    assert states(replicas) == "rdss"
    assert replicas.own.tolist() == [0, 2]
    assert replicas.disputed == [1]
    assert replicas.excluded(1) == {A}
    assert replicas.unchanged_for(0, NOW + 12) == 12
    assert replicas.unchanged_for(3, NOW + 12) == float("inf")
    assert replicas.unchanged_for(1, NOW + 12) == 7
    assert replicas.all(ReplicaState.READY, ReplicaState.DRAINING).tolist() == [0, 1]
    assert replicas.place(Told("AB", "BC", "AC", "BC"), NOW + 9).tolist() == []
    assert replicas.unchanged_for(1, NOW + 12) == 7  # since it first was
    assert replicas.place(Told("AB", "AC", "AC", "BC"), NOW + 10).tolist() == []
    assert states(replicas) == "rrss"
    assert replicas.disputed == []
    replicas.place(Told("AB", "BC", "AC", "BC"), NOW + 20)
    assert replicas.unchanged_for(1, NOW + 21) == 1  # not since the first time
    assert replicas.held.tolist() == [0, 1, 2, 3]
    replicas.covered(1, NOW)
    replicas.covered(3, NOW)
    assert replicas.held.tolist() == [0, 2]
    with pytest.raises(ValueError, match="read-only"):
        replicas.held[0] = 3
    assert states(replicas) == "rasa"


def test_only_syncing_and_draining_shards_are_let_go() -> None:
    replicas = Replicas(A, 2, [0, 1])
    replicas.place(Told("A", "A"), NOW)
    make_ready(replicas)
    with pytest.raises(ValueError, match="ready cannot be covered"):
        replicas.covered(0, NOW)
    with pytest.raises(ValueError, match="ready cannot be caught up"):
        replicas.caught_up(0, NOW)


def test_each_change_is_counted() -> None:
    replicas = Replicas(A, 2, [0])
    seen = [replicas.changes]
    replicas.place(Told("A", "B"), NOW)
    seen.append(replicas.changes)
    replicas.caught_up(0, NOW)
    seen.append(replicas.changes)
    replicas.place(Told("A", "B"), NOW)  # the owners may be others
    seen.append(replicas.changes)
    assert sorted(set(seen)) == seen
    replicas.all(ReplicaState.READY)
    assert replicas.changes == seen[-1]
