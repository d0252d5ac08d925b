"""Looking the directory up in a simulation: who finds nobody holds back, but the very first."""

import random

from giaann_p2p.sim.client import Client
from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.replica import ReplicaState


def states(node: Storage) -> set[ReplicaState]:
    return {node.core.replicas.state(shard) for shard in range(node.world.rules.shards)}


def test_the_first_peer_of_a_swarm_begins() -> None:
    swarm = Swarm(1)
    swarm.add_storage()
    swarm.clock.run_until(swarm.settings.patience + 5)
    assert states(swarm.storages[0]) == {ReplicaState.READY}


def test_a_newcomer_that_reaches_nobody_begins_nothing_of_its_own() -> None:
    swarm = Swarm(1)
    for _ in range(4):
        swarm.add_storage()
    job = random.Random("1 job").randbytes(16)
    swarm.clients.append(Client(swarm, "client0", job, list(range(3)), 0.0))
    swarm.clock.run_until(60)
    newcomer = Identity.from_seed(random.Random("1 peer4").randbytes(32)).peer
    for node in swarm.nodes:
        swarm.network.cut |= {(newcomer, node.peer), (node.peer, newcomer)}
    swarm.add_storage()
    late = swarm.storages[4]
    assert late.peer == newcomer
    swarm.clock.run_until(200)
    assert states(late) == {ReplicaState.ABSENT}
    swarm.network.cut.clear()
    swarm.clock.run_until(320)
    assert ReplicaState.READY in states(late)
    assert swarm.problems() == []
