"""One simulated history: inject faults, repair them, then check the promises."""

import random
import traceback
from typing import NamedTuple

from giaann_p2p.sim.client import Client, Habit
from giaann_p2p.sim.faults import Faults
from giaann_p2p.sim.hostile import cast
from giaann_p2p.sim.hostile.watch import Watch
from giaann_p2p.sim.newcomers import Newcomers
from giaann_p2p.sim.resharding import Resharding
from giaann_p2p.sim.swarm import Swarm
from giaann_p2p.sim.trainer import Trainer
from giaann_p2p.sim.world import Rules
from giaann_p2p.store.undisturbed import undisturbed

TROUBLE = 420.0
PATIENCE = 780.0
"""The virtual seconds after the last fault within which all promises must hold again."""
_LOOK_EVERY = 5.0
_READ_EVERY = 2.0
"""The most virtual seconds between two reads of a client in a swarm with hostile peers."""


class Outcome(NamedTuple):
    """The result of one seed."""

    seed: int
    problems: list[str]
    settled: float
    """The virtual time when all promises held, or when the run gave up, in seconds."""
    committed: int
    answered: int
    unanswered: int
    bytes: int
    trace: list[str]
    counts: dict[str, int]
    """Counts of hostile acts and their outcomes."""


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
    newcomers: bool = False,
    reshard: bool = False,
    profile: str = "words",
    cut: int = 0,
) -> Outcome:
    """Run one history; if it is `calm`, hostile peers are the only fault.

    With `newcomers`, some peers join and vanish; the newcomers of an odd seed stay until they have
    standing. With `reshard`, the founder raises the numbers of replicas and shards twice, and the
    rows that clients accept are watched as in a history with hostile peers. With `cut`, the largest
    columns are cut into that many parts.
    """
    if hostile:
        swarm = cast.founded(seed, hostile, everything, profile, cut)
    else:
        swarm = Swarm(seed, everything, rules=Rules(profile=profile, cut=cut))
        if reshard:
            swarm.promises = Watch(swarm)
    habit = Habit(_READ_EVERY, cast.BEGINS, cast.VERIFY) if hostile else Habit()
    try:
        with undisturbed():
            _populate(swarm, storages, clients, computes, chunks, habit)
            cast.join(swarm, hostile)
            if newcomers:
                swarm.promises.may_lose_all_owners = bool(seed % 2)
                Newcomers(swarm, trouble, old=bool(seed % 2))
            if reshard:
                Resharding(swarm, trouble)
        problems = _problems(swarm, trouble, patience, calm)
    except Exception as error:  # noqa: BLE001  (any error is a finding of this seed)
        problems = [f"{type(error).__name__}: {error}"]
        for line in traceback.format_exc().splitlines():
            swarm.trace.note(swarm.clock.now, "world", line)
    finally:
        swarm.close()
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


def _populate(
    swarm: Swarm, storages: int, clients: int, computes: int, chunks: int, habit: Habit
) -> None:
    seed = swarm.seed
    for _ in range(storages):
        swarm.add_storage()
    for i in range(clients):
        job = random.Random(f"{seed} job {i}").randbytes(16)
        mine = list(range(i * 1000, i * 1000 + chunks))
        swarm.clients.append(Client(swarm, f"client{i}", job, mine, swarm.skew(), habit))
    for _ in range(computes):
        swarm.add_compute()
    job = random.Random(f"{seed} job").randbytes(16)
    swarm.trainers.append(Trainer(swarm, "trainer", job, 5000, chunks, swarm.skew()))


def _problems(swarm: Swarm, trouble: float, patience: float, calm: bool) -> list[str]:
    if not calm:
        Faults(swarm, trouble)
    swarm.run_until(trouble)
    cast.leave(swarm)
    problems = swarm.problems()
    while problems and swarm.clock.now < trouble + patience and not swarm.promises.faults:
        swarm.run_until(swarm.clock.now + _LOOK_EVERY)
        problems = swarm.problems()
    return problems or _read_back(swarm, swarm.clock.now + patience)


def _read_back(swarm: Swarm, until: float) -> list[str]:
    """Have each client read what it pushed; return the problems of that."""
    for client in swarm.clients:
        client.read_back()
    waiting = swarm.clients
    while waiting and swarm.clock.now < until and not swarm.promises.faults:
        swarm.run_until(swarm.clock.now + 1.0)
        waiting = [client for client in waiting if not client.has_read_back]
    return swarm.promises.faults + [f"{client.name} gets no rows" for client in waiting]
