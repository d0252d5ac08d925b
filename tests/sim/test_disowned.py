"""What a liar taught a swarm is withdrawn once the founder disowns it, and nothing else is."""

import os
import random
from collections.abc import Iterator
from functools import partial

import pytest

from giaann_p2p.sim.client import Client, Habit
from giaann_p2p.sim.faults import Faults
from giaann_p2p.sim.founder import disown, withdraw
from giaann_p2p.sim.hostile import cast
from giaann_p2p.sim.hostile.shirker import Shirker, Shirking
from giaann_p2p.sim.hostile.watch import Watch
from giaann_p2p.sim.storage import Storage
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.trainer import Trainer
from giaann_p2p.sim.world import Rules
from giaann_p2p.store.applied import WITHDRAWN, Applied
from giaann_p2p.swarm.replication.answers import Answers
from giaann_p2p.swarm.wire.messages import OrphansAre
from giaann_p2p.swarm.wire.orphans import Orphans
from giaann_p2p.swarm.wire.withdrawn import parts_of
from tests.sim import HANGS

SEEDS = max(2, int(os.environ.get("GIAANN_SEEDS", "2")) // 10)
BEGINS, DISOWNED, ENDS = 3.0, 80.0, 140.0
EVERY = 15.0
PATIENCE = 780.0
NEVER = 1e9


def taught_by_a_liar(seed: int, *ways: Shirking) -> Swarm:
    """Let two honest compute peers and a hostile one teach a swarm."""
    swarm = Swarm(seed, rules=Rules(shards=8, redundancy=1), admission="token")
    swarm.promises = Watch(swarm)
    for _ in range(6):
        swarm.add_storage()
    for _ in range(2):
        swarm.add_compute()
    cast.let(swarm, Shirker(swarm, "liar", 0.0, frozenset(ways)), BEGINS)
    job = random.Random(f"{seed} job").randbytes(16)
    nobody_reads = Habit(since=NEVER)
    swarm.clients.append(Client(swarm, "client0", job, [*range(10)], 0.0, nobody_reads))
    swarm.trainers.append(Trainer(swarm, "trainer", job, 5000, 30, 0.0))
    return swarm


def disown_the_liar(swarm: Swarm) -> None:
    disown(swarm, [liar.peer for liar in swarm.hostiles])


def withdraw_every_so_often(swarm: Swarm) -> None:
    withdraw(swarm)
    swarm.clock.at(swarm.clock.now + EVERY, partial(withdraw_every_so_often, swarm))


def settled(swarm: Swarm, until: float, *, honest: bool = False) -> list[str]:
    """Let all be as it should be, and nothing be left of the liar's if wanted; tell what is not."""
    problems = swarm.problems()
    while (problems or (honest and left_of_the_liar(swarm))) and swarm.clock.now < until:
        swarm.clock.run_until(swarm.clock.now + 5.0)
        problems = swarm.problems()
    return problems


def held(swarm: Swarm) -> Iterator[Applied]:
    """Return the set of chunks of each replica."""
    for peer in swarm.storages:
        yield from peer.store.sets(peer.store.shards.tolist()).values() if peer.alive else ()


def left_of_the_liar(swarm: Swarm) -> set[int]:
    """Return the chunks of the liar's own job that count somewhere."""
    (liar,) = swarm.hostiles
    assert isinstance(liar, Shirker)
    return {chunk for one in held(swarm) for chunk in one.left.of(liar.job)}


@pytest.mark.slow
@pytest.mark.timeout(HANGS)
def test_what_a_liar_taught_is_forgotten_and_nothing_else_whatever_goes_wrong() -> None:
    gone = 0
    for seed in range(SEEDS):
        swarm = taught_by_a_liar(seed, Shirking.TEACHES)
        Faults(swarm, ENDS)
        swarm.clock.at(DISOWNED, partial(disown_the_liar, swarm))
        swarm.clock.at(DISOWNED + 1.0, partial(withdraw_every_so_often, swarm))
        swarm.clock.run_until(ENDS)
        cast.leave(swarm)
        assert settled(swarm, ENDS + PATIENCE, honest=True) == [], f"seed {seed}"
        assert left_of_the_liar(swarm) == set(), f"seed {seed}"
        gone += sum(len(one.withdrawn) for one in held(swarm))
    assert gone > 50 * SEEDS


@pytest.mark.slow
def test_without_the_founders_word_lies_stay() -> None:
    swarm = taught_by_a_liar(0, Shirking.FALSE)
    swarm.clock.run_until(ENDS)
    cast.leave(swarm)
    problems = settled(swarm, ENDS + 60.0)
    assert problems
    assert all("is not the sum of its chunks" in problem for problem in problems)
    disown_the_liar(swarm)
    withdraw_every_so_often(swarm)
    assert settled(swarm, swarm.clock.now + PATIENCE) == []


class Slanders(Orphans):
    """An owner that says of all that it remembers that liars alone taught it."""

    def __init__(self, peer: Storage) -> None:
        super().__init__()
        self._peer = peer

    def page(self, number: int, at: int) -> OrphansAre:
        tree = self._peer.world.lessons.tree
        kept = [one for one in self._peer.store.kept() if one.chunk < WITHDRAWN]
        roots = {(one.job, one.chunk): tree(one.chunk).root for one in kept}
        return OrphansAre(number, 1, parts_of(roots))


class Denies(Orphans):
    """An owner that tells of nothing."""

    def page(self, number: int, at: int) -> OrphansAre:
        return OrphansAre(number, 1, ())


@pytest.mark.slow
def test_owners_that_lie_have_nothing_withdrawn_that_others_taught_and_keep_no_lie() -> None:
    swarm = taught_by_a_liar(1, Shirking.TEACHES)
    swarm.clock.run_until(DISOWNED)
    (liar,) = swarm.hostiles
    assert isinstance(liar, Shirker)
    slanders, denies = swarm.storages[:2]
    for peer, tells in ((slanders, Slanders(slanders)), (denies, Denies())):
        core = peer.core
        peer._answers = core, Answers(peer.store, core.replicas.state, peer.peer, tells)
    disown_the_liar(swarm)
    swarm.clock.run_until(DISOWNED + 5.0)
    found = withdraw(swarm)
    assert found.by_job().keys() == {liar.job}
    honest = {job for one in held(swarm) for job in one} - {liar.job}
    assert {job for job, _ in found.left} == honest
    withdraw_every_so_often(swarm)
    cast.leave(swarm)
    assert settled(swarm, swarm.clock.now + PATIENCE, honest=True) == []
    assert left_of_the_liar(swarm) == set()
    assert all(not one.withdrawn.of(job) for one in held(swarm) for job in honest)
