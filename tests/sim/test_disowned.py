"""What a liar taught a swarm is withdrawn once the founder disowns it, and nothing else is."""

import os
import random
from functools import partial

import pytest

from giaann_p2p.sim import compute
from giaann_p2p.sim.client import Client, Habit
from giaann_p2p.sim.faults import Faults
from giaann_p2p.sim.hostile import cast
from giaann_p2p.sim.hostile.shirker import Shirker, Shirking
from giaann_p2p.sim.hostile.watch import Watch
from giaann_p2p.sim.storage import join
from giaann_p2p.sim.swarm import Rules, Swarm
from giaann_p2p.sim.trainer import Trainer

SEEDS = max(2, int(os.environ.get("GIAANN_SEEDS", "2")) // 10)
BEGINS, DISOWNED, ENDS = 3.0, 80.0, 140.0
PATIENCE = 780.0
NEVER = 1e9


def taught_by_a_liar(seed: int, *ways: Shirking) -> Swarm:
    """Let two honest compute peers and a hostile one teach a swarm."""
    swarm = Swarm(seed, rules=Rules(shards=8, redundancy=1), admission="token")
    swarm.promises = Watch(swarm)
    for _ in range(6):
        join(swarm)
    for _ in range(2):
        compute.join(swarm)
    cast.let(swarm, Shirker(swarm, "liar", 0.0, frozenset(ways)), BEGINS)
    job = random.Random(f"{seed} job").randbytes(16)
    nobody_reads = Habit(since=NEVER)
    swarm.clients.append(Client(swarm, "client0", job, [*range(10)], 0.0, nobody_reads))
    swarm.trainers.append(Trainer(swarm, "trainer", job, 5000, 30, 0.0))
    return swarm


def disown(swarm: Swarm) -> None:
    (liar,) = swarm.hostiles
    following = swarm.admission.revoked.next(swarm.founder, {liar.peer}, {liar.peer})
    assert swarm.admission.learn(following.to_bytes())


def settled(swarm: Swarm, until: float) -> list[str]:
    """Let all be as it should be; return what is not."""
    problems = swarm.problems()
    while problems and swarm.clock.now < until:
        swarm.clock.run_until(swarm.clock.now + 5.0)
        problems = swarm.problems()
    return problems


def check_all_left_is_honest(swarm: Swarm) -> int:
    """Check that nothing that counts is of the liar's own job; return how much is withdrawn."""
    (liar,) = swarm.hostiles
    assert isinstance(liar, Shirker)
    gone = 0
    for peer in swarm.storages:
        for held in peer.store.sets(peer.store.shards.tolist()).values() if peer.alive else ():
            assert not held.left.of(liar.job)
            gone += len(held.withdrawn)
    return gone


@pytest.mark.slow
@pytest.mark.timeout(120 + 60 * SEEDS)
def test_what_a_liar_taught_is_forgotten_and_nothing_else_whatever_goes_wrong() -> None:
    gone = 0
    for seed in range(SEEDS):
        swarm = taught_by_a_liar(seed, Shirking.TEACHES)
        Faults(swarm, ENDS)
        swarm.clock.at(DISOWNED, partial(disown, swarm))
        swarm.clock.run_until(ENDS)
        cast.leave(swarm)
        assert settled(swarm, ENDS + PATIENCE) == [], f"seed {seed}"
        gone += check_all_left_is_honest(swarm)
    assert gone > 50 * SEEDS


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_without_the_founders_word_lies_stay() -> None:
    swarm = taught_by_a_liar(0, Shirking.FALSE)
    swarm.clock.run_until(ENDS)
    cast.leave(swarm)
    problems = settled(swarm, ENDS + 60.0)
    assert problems
    assert all("is not what its chunks come to" in problem for problem in problems)
    disown(swarm)
    assert settled(swarm, swarm.clock.now + PATIENCE) == []
