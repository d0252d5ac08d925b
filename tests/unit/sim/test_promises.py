"""Each check of the simulator can fail: a swarm that is well is broken by hand, and it is seen."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest

from giaann_p2p.model.delta import EMPTY
from giaann_p2p.model.rows import DeltaRows, Neuron, Question
from giaann_p2p.sim.client import Client
from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.settings import Settings
from giaann_p2p.swarm.wire.replica import ReplicaState

JOB = b"one job of many."
CHUNK, SHARD = 4, 10  # the chunk, and the next one, have rows in this shard


@pytest.fixture
def swarm() -> Iterator[Swarm]:
    """Three peers that hold all, and have learned a little."""
    swarm = founded(3)
    swarm.clients.append(Client(swarm, "client0", JOB, [0, 1, 2], 0.0))
    swarm.clock.run_until(60)
    assert swarm.problems() == []
    return swarm


def founded(storages: int, settings: Settings | None = None) -> Swarm:
    swarm = Swarm(0, everything=True, settings=settings)
    for _ in range(storages):
        swarm.add_storage()
    return swarm


def update(swarm: Swarm, chunk: int, like: int, shard: int = SHARD) -> Update:
    return Update(JOB, chunk, np.array([shard], np.uint16), swarm.lessons.part(like, shard))


def test_a_shard_that_is_not_ready_yet() -> None:
    swarm = founded(3)
    swarm.clock.run_until(1.5)
    assert f"shard {SHARD} is still syncing at peer1" in swarm.problems()
    assert f"shard {SHARD} has 0 ready replicas" in swarm.problems()


def test_a_shard_with_too_few_replicas() -> None:
    swarm = founded(4)
    swarm.clock.run_until(60)
    assert swarm.problems() == []
    swarm.storages[2].crash(lost=True)
    assert any(problem.endswith("has 2 ready replicas") for problem in swarm.problems())
    swarm.clock.run_until(200)
    assert swarm.problems() == []


def test_a_shard_with_too_many_replicas() -> None:
    swarm = founded(3)
    swarm.clock.run_until(60)
    swarm.add_storage()
    one = swarm.storages[3]
    one.core.replicas, one.store = swarm.storages[0].core.replicas, swarm.storages[0].store
    assert f"shard {SHARD} has 4 ready replicas" in swarm.problems()


def test_a_shard_that_is_said_to_be_there_and_is_not(swarm: Swarm) -> None:
    swarm.storages[1].store.drop([SHARD])
    assert "peer1 has other shards in its store than it knows of" in swarm.problems()


def test_a_shard_whose_rows_are_not_what_its_chunks_come_to(swarm: Swarm) -> None:
    for peer in swarm.storages:
        peer.store.apply([update(swarm, CHUNK, CHUNK + 1)])
    assert swarm.problems() == [
        f"shard {SHARD} at {peer.name} is not the sum of its chunks" for peer in swarm.storages
    ]


def test_replicas_with_different_chunks(swarm: Swarm) -> None:
    swarm.storages[2].store.apply([update(swarm, CHUNK, CHUNK)])
    assert swarm.problems() == [f"shard {SHARD} has replicas with different chunks"]


def test_an_acknowledged_chunk_that_is_not_there(swarm: Swarm) -> None:
    swarm.promises.acked(swarm.storages[0], JOB, CHUNK, np.array([SHARD], np.uint16))
    lost = [f"chunk {CHUNK} was acknowledged for shard {SHARD} and is lost"]
    assert swarm.problems() == lost
    for peer in swarm.storages:
        assert lost[0] in swarm.problems()
        peer.store.apply([update(swarm, CHUNK, CHUNK)])
    assert swarm.problems() == []


def test_what_only_lost_peers_acknowledged_may_be_gone_unless_it_is_committed() -> None:
    swarm = founded(5)
    swarm.clock.run_until(60)
    shards = np.arange(swarm.rules.shards, dtype=np.uint16)
    swarm.promises.acked(swarm.storages[0], JOB, CHUNK, shards)
    swarm.promises.acked(swarm.storages[1], JOB, CHUNK, shards)
    swarm.storages[0].crash(lost=True)
    swarm.clock.run_until(200)
    assert any("acknowledged" in problem for problem in swarm.problems())
    swarm.storages[1].crash(lost=True)
    swarm.clock.run_until(400)
    assert swarm.problems() == []
    swarm.promises.commit(JOB, CHUNK)
    lost = f"chunk {CHUNK} was acknowledged for shard {SHARD} and is lost"
    assert lost in swarm.problems()


def test_a_chunk_that_is_committed_before_enough_have_it(swarm: Swarm) -> None:
    shards = np.arange(swarm.rules.shards, dtype=np.uint16)
    swarm.promises.acked(swarm.storages[0], JOB, CHUNK, shards)
    swarm.promises.acked(swarm.storages[1], JOB, CHUNK, shards[shards != SHARD])
    swarm.promises.commit(JOB, CHUNK)
    assert swarm.promises.faults == [
        f"chunk {CHUNK} is taken as committed; shard {SHARD} lacks a quorum"
    ]


def test_what_a_crash_made_a_peer_forget(swarm: Swarm) -> None:
    peer = swarm.storages[0]
    swarm.promises.acked(peer, JOB, CHUNK, np.array([SHARD], np.uint16))
    peer.crash()
    peer.restart()
    assert swarm.promises.faults == [f"peer0 forgot 1 chunks of shard {SHARD} in a crash"]


def test_a_shard_that_is_let_go_before_others_have_it(swarm: Swarm) -> None:
    peer, other, another = swarm.storages
    peer.store.apply([update(swarm, CHUNK, CHUNK)])
    swarm.promises.let_go(peer, peer.store.sets([SHARD]))
    assert swarm.promises.faults == [f"peer0 dropped shard {SHARD}, which 0 others have"]
    other.store.apply([update(swarm, CHUNK, CHUNK)])
    swarm.promises.let_go(peer, peer.store.sets([SHARD]))
    assert swarm.promises.faults[1:] == [f"peer0 dropped shard {SHARD}, which 1 others have"]
    another.store.apply([update(swarm, CHUNK, CHUNK)])
    swarm.promises.let_go(peer, peer.store.sets([SHARD]))
    assert len(swarm.promises.faults) == 2


def test_a_store_with_other_shards_than_its_peer_knows_of(swarm: Swarm) -> None:
    swarm.storages[1].store.drop([SHARD])
    assert "peer1 has other shards in its store than it knows of" in swarm.problems()


def test_rows_that_are_served_wrongly(swarm: Swarm) -> None:
    peer, lessons = swarm.storages[0], swarm.lessons
    rows = lessons.content(SHARD, [0, 1, 2])
    asked = [Neuron(*row) for row in zip(rows.concept.tolist(), rows.feature.tolist(), strict=True)]
    asked = [neuron for neuron in asked if lessons.layout.shard_of(*neuron) == SHARD]
    swarm.promises.served(peer, [*asked, Neuron(1, 2)], DeltaRows(rows))
    swarm.promises.served(peer, [Neuron(1, 2)], DeltaRows(lessons.part(CHUNK, SHARD)))
    assert swarm.promises.faults == []
    wrong = f"peer0 serves rows of shard {SHARD} that are wrong"
    others = [
        lessons.content(SHARD, [0]),  # some are missing
        EMPTY,
        lessons.content(SHARD, [0, 0, 1, 2]),  # a chunk counts twice
        dataclasses.replace(rows, strength=rows.strength + 1),
        dataclasses.replace(rows, segment=rows.segment + 1),
    ]
    for count, other in enumerate(others, 1):
        swarm.promises.served(peer, asked, DeltaRows(other))
        assert swarm.promises.faults == [wrong] * count
    assert swarm.problems() == swarm.promises.faults  # no time makes it good again


def test_rows_of_the_end_have_all_committed_chunks(swarm: Swarm) -> None:
    promises, lessons = swarm.promises, swarm.lessons
    storage, asked = swarm.storages[0], lessons.neurons(0)[:1]
    shard = lessons.layout.shard_of(*asked[0])
    promises.committed |= {(JOB, 0), (JOB, 46)}

    def read(*chunks: int) -> list[str]:
        rows = DeltaRows(lessons.content(shard, chunks)).read(Question(asked))
        promises.complete(storage, asked, rows)
        return promises.faults

    assert lessons.rows(shard, frozenset({0})).read(Question(asked)) != [None]
    assert read(0, 46) == []
    promises.complete(storage, asked, [None])
    wrong = f"peer0 reads rows of shard {shard} that lack a committed chunk"
    assert promises.faults == [wrong]
    promises.may_lose_all_owners = True
    promises.complete(storage, asked, [None])
    assert promises.faults == [wrong]


def test_rows_are_checked_when_a_peer_serves_them(swarm: Swarm) -> None:
    for peer in swarm.storages:
        for shard in range(swarm.rules.shards):
            peer.store.apply([update(swarm, CHUNK, 0, shard)])
    swarm.clock.run_until(120)
    assert any("serves rows of shard" in fault for fault in swarm.promises.faults)


def test_a_disk_that_cannot_be_opened_again(swarm: Swarm) -> None:
    peer = swarm.storages[1]
    peer.crash()
    peer.disk.damage("store.json", b"nothing")
    peer.restart()
    assert "peer1 cannot be opened after a crash" in swarm.problems()[0]


def test_a_client_that_is_not_done(swarm: Swarm) -> None:
    swarm.clients[0].push([10])
    assert swarm.problems() == ["client0 has chunks left"]
    swarm.clock.run_until(90)
    assert swarm.problems() == []


def test_a_peer_that_does_not_leave(swarm: Swarm) -> None:
    swarm.add_storage()
    swarm.clock.run_until(150)
    swarm.storages[0].leave()
    assert "peer0 has not left yet" in swarm.problems()
    swarm.clock.run_until(300)
    assert swarm.storages[0].left
    assert swarm.problems() == []


def test_a_draining_shard_is_not_at_rest() -> None:
    swarm = founded(3, Settings(standing=0))  # so nobody holds it beside newcomers
    swarm.clients.append(Client(swarm, "client0", JOB, [0, 1, 2], 0.0))
    swarm.clock.run_until(60)
    for _ in range(3):
        swarm.add_storage()
    swarm.clock.run_until(75)
    draining = [
        f"shard {shard} is still draining at {peer.name}"
        for shard in range(swarm.rules.shards)
        for peer in swarm.storages
        if peer.core.replicas.state(shard) is ReplicaState.DRAINING
    ]
    assert draining
    assert set(draining) <= set(swarm.problems())


def test_storage_peers_are_named_in_traces(swarm: Swarm) -> None:
    peer: Storage = swarm.storages[0]
    assert repr(peer) == "<peer0>"
    assert swarm.trace.lines[0] == "    0.000  peer0       begins with 0 shards on its disk"
