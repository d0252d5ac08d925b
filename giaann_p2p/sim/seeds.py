"""Runs many histories in parallel processes; the results are the same as in one process."""

import gc
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import NamedTuple

from giaann_p2p.errors import WorkerError
from giaann_p2p.model.workers import in_processes
from giaann_p2p.sim.run import Outcome, run

_DEATH = (
    "a simulating process died, perhaps because memory ran out: "
    "run again with fewer processes (--workers 1)"
)
_COLLECT_AFTER = 50_000
"""The number of objects made between two garbage collections in a worker process: more than
Python's usual 700, because collections take time."""
_AHEAD = 3
"""The number of histories queued per process, because some take twice as long as others."""


class Size(NamedTuple):
    """The peers, chunks and minutes of each history."""

    storages: int = 8
    clients: int = 1
    """The number of clients that push and read by themselves; besides them one trainer leases to
    the compute peers."""
    computes: int = 2
    minutes: float = 7.0
    """The duration of the faults in minutes."""
    chunks: int = 25
    """The number of chunks that each client, and the trainer, has learned."""
    hostile: int = 0
    """The number of hostile peers, in addition to the other peers."""
    newcomers: bool = False
    """Whether large storage peers join together and vanish; see `newcomers`."""
    profile: str = "words"
    """The profile of the model."""
    reshard: bool = False
    """Whether the founder raises the numbers of replicas and shards; see `resharding`."""
    cut: int = 0
    """The number of parts into which some columns are cut; 0: none."""


class Played(NamedTuple):
    """A history's result, and the seconds that it took."""

    outcome: Outcome
    seconds: float


class Summary(NamedTuple):
    """The totals of many histories."""

    seeds: int
    failed: list[int]
    virtual_seconds: float
    seconds: float
    """The wall-clock seconds for all histories."""
    bytes: int
    committed: int
    answered: int
    unanswered: int
    slowest: int | None
    """The seed that took longest to recover; None if none did."""
    settled_after: float
    """The virtual seconds that this seed took to recover after the last fault."""
    counts: dict[str, int]
    """Counts of hostile acts and their outcomes."""


def play(
    seeds: Sequence[int], size: Size, workers: int, everything: bool = False
) -> Iterator[Played]:
    """Run histories; yield their results in order of the seeds.

    `everything` keeps the whole trace of each history, instead of only its end.
    """
    work = partial(_play, size, everything)
    if workers == 1 or len(seeds) == 1:
        yield from map(work, seeds)
        return
    # Closed at once: a caller that stops iterating leaves no processes behind.
    with closing(_played_elsewhere(work, seeds, workers)) as played:
        yield from played


def summary(played: Sequence[Played], size: Size, seconds: float) -> Summary:
    """Return the totals of the results of some seeds."""
    outcomes = [one.outcome for one in played]
    passed = [outcome for outcome in outcomes if not outcome.problems]
    slowest = max(passed, key=lambda outcome: outcome.settled, default=None)
    return Summary(
        seeds=len(outcomes),
        failed=[outcome.seed for outcome in outcomes if outcome.problems],
        virtual_seconds=sum(outcome.settled for outcome in outcomes),
        seconds=seconds,
        bytes=sum(outcome.bytes for outcome in outcomes),
        committed=sum(outcome.committed for outcome in outcomes),
        answered=sum(outcome.answered for outcome in outcomes),
        unanswered=sum(outcome.unanswered for outcome in outcomes),
        slowest=slowest.seed if slowest else None,
        settled_after=slowest.settled - 60 * size.minutes if slowest else 0.0,
        counts=dict(sum((Counter(outcome.counts) for outcome in outcomes), Counter())),
    )


def _play(size: Size, everything: bool, seed: int) -> Played:
    begun = time.perf_counter()
    trouble = 60 * size.minutes
    outcome = run(
        seed,
        storages=size.storages,
        clients=size.clients,
        computes=size.computes,
        chunks=size.chunks,
        trouble=trouble,
        everything=everything,
        hostile=size.hostile,
        newcomers=size.newcomers,
        profile=size.profile,
        reshard=size.reshard,
        cut=size.cut,
    )
    return Played(outcome, time.perf_counter() - begun)


def _played_elsewhere(
    work: "partial[Played]", seeds: Sequence[int], workers: int
) -> Generator[Played]:
    try:
        yield from in_processes(partial(_among_others, work), iter(seeds), workers, _AHEAD)
    except WorkerError:
        raise WorkerError(_DEATH) from None


def _among_others(work: "partial[Played]", seed: int) -> Played:
    """Run one history in a worker process; garbage collection is rare there, and skips modules."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)
    return work(seed)
