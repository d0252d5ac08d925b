"""One simulated history: things go wrong, then all is mended, then the promises are checked."""

import random
import traceback
from typing import NamedTuple

from giaann_p2p.sim import compute
from giaann_p2p.sim.client import Client, Habit
from giaann_p2p.sim.faults import Faults
from giaann_p2p.sim.hostile import cast
from giaann_p2p.sim.storage import join
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.trainer import Trainer

TROUBLE = 420.0
PATIENCE = 780.0
"""Seconds within which all must be as it should be, once nothing goes wrong any longer."""
_LOOK_EVERY = 5.0
_READ_EVERY = 2.0
"""Seconds at most between two questions of a client that has hostile peers among its owners."""


class Outcome(NamedTuple):
    """What came of a seed."""

    seed: int
    problems: list[str]
    settled: float
    """When all was as it should be."""
    committed: int
    answered: int
    unanswered: int
    bytes: int
    trace: list[str]
    counts: dict[str, int]
    """What hostile peers did, and what came of it, how often."""


def run(
    seed: int,
    storages: int = 8,
    clients: int = 1,
    computes: int = 2,
    chunks: int = 25,
    trouble: float = TROUBLE,
    patience: float = PATIENCE,
    everything: bool = False,
    hostile: int = 0,
    calm: bool = False,
) -> Outcome:
    """Let a history happen. If it is calm, nothing goes wrong but what hostile peers do."""
    swarm = cast.founded(seed, hostile, everything) if hostile else Swarm(seed, everything)
    habit = Habit(_READ_EVERY, cast.BEGINS, cast.VERIFY) if hostile else Habit()
    for _ in range(storages):
        join(swarm)
    for i in range(clients):
        job = random.Random(f"{seed} job {i}").randbytes(16)
        mine = list(range(i * 1000, i * 1000 + chunks))
        swarm.clients.append(Client(swarm, f"client{i}", job, mine, swarm.skew(), habit))
    for _ in range(computes):
        compute.join(swarm)
    job = random.Random(f"{seed} job").randbytes(16)
    swarm.trainers.append(Trainer(swarm, "trainer", job, 5000, chunks, swarm.skew()))
    cast.join(swarm, hostile)
    try:
        problems = _problems(swarm, trouble, patience, calm)
    except Exception as error:  # noqa: BLE001  (whatever it is, the seed has found it)
        problems = [f"{type(error).__name__}: {error}"]
        for line in traceback.format_exc().splitlines():
            swarm.trace.note(swarm.clock.now, "world", line)
    return Outcome(
        seed,
        problems,
        swarm.clock.now,
        len(swarm.promises.committed),
        sum(client.answered for client in swarm.clients),
        sum(client.unanswered for client in swarm.clients),
        swarm.network.carried,
        swarm.trace.lines,
        cast.counts(swarm),
    )


def _problems(swarm: Swarm, trouble: float, patience: float, calm: bool) -> list[str]:
    if not calm:
        Faults(swarm, trouble)
    swarm.clock.run_until(trouble)
    cast.leave(swarm)
    problems = swarm.problems()
    while problems and swarm.clock.now < trouble + patience and not swarm.promises.faults:
        swarm.clock.run_until(swarm.clock.now + _LOOK_EVERY)
        problems = swarm.problems()
    return problems
