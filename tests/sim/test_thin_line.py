"""A peer joins over a thin line: little more comes over it than it lacks, whoever it asks."""

import random

import numpy as np
import pytest

from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.wire.identity import Identity
from giaann_p2p.swarm.wire.replica import ReplicaState

CHUNKS, RATE = 500, 16_000.0
WITHIN = 100.0
MOST_TIMES = 1.5


def joined(rate: float) -> tuple[float, int]:
    """Let a peer join that lacks much; return the seconds that it took, and the bytes."""
    newcomer = Identity.from_seed(random.Random("1 peer3").randbytes(32)).peer
    swarm = Swarm(1)
    for _ in range(3):
        swarm.add_storage()
    swarm.clock.run_until(30)
    for node in swarm.storages:
        node.store.apply(updates(swarm))
        node.node._holdings.look()  # as its writer does after each write
    swarm.network.thin[newcomer] = rate
    began = swarm.clock.now
    swarm.add_storage()
    one = swarm.storages[3]
    assert one.peer == newcomer
    while not is_ready(one):
        swarm.clock.run_until(swarm.clock.now + 1)
        assert swarm.clock.now < began + WITHIN
    return swarm.clock.now - began, swarm.network.arrived[newcomer]


def updates(swarm: Swarm) -> list[Update]:
    job, shards = bytes(16), np.arange(swarm.lessons.layout.shards, dtype=np.uint16)
    return [Update(job, chunk, shards, swarm.lessons.delta(chunk)) for chunk in range(CHUNKS)]


def is_ready(node: Storage) -> bool:
    states = {node.core.replicas.state(shard) for shard in range(node.world.rules.shards)}
    return ReplicaState.READY in states and ReplicaState.SYNCING not in states


@pytest.mark.slow
@pytest.mark.parametrize("rate", [RATE, 2 * RATE])
def test_little_more_comes_over_a_thin_line_than_over_any_other(rate: float) -> None:
    _, least = joined(1000 * RATE)
    seconds, came = joined(rate)
    print(f"{came:,} bytes of {least:,} in {seconds:g} s")
    assert least > 10 * RATE  # more than comes in time if all is asked for at once
    assert came <= MOST_TIMES * least
