"""Many histories, in as many processes as there are cores; what comes out is the same in one."""

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
    "a simulating process died, perhaps for want of memory: "
    "go on with fewer processes (--workers 1)"
)
_AHEAD = 3
"""Histories that a process has before it; some take twice as long as others."""


class Size(NamedTuple):
    """How large each history is."""

    storages: int = 8
    clients: int = 1
    """They push by themselves, and read; beside them is one who leases to the compute peers."""
    computes: int = 2
    minutes: float = 7.0
    """For how long things go wrong."""
    chunks: int = 25
    """What each of those has learned."""
    hostile: int = 0
    """How many peers mean harm, beside those."""


class Played(NamedTuple):
    """A history, and how long it took to let it happen."""

    outcome: Outcome
    seconds: float


class Summary(NamedTuple):
    """What many histories came to."""

    seeds: int
    failed: list[int]
    virtual_seconds: float
    seconds: float
    """Real ones, from the first to the last."""
    bytes: int
    committed: int
    answered: int
    unanswered: int
    slowest: int | None
    """The seed that took longest to be well again; None if none was."""
    settled_after: float
    """How many seconds it took it, from the last fault on."""
    counts: dict[str, int]
    """What hostile peers did, and what came of it, how often."""


def play(
    seeds: Sequence[int], size: Size, workers: int, everything: bool = False
) -> Iterator[Played]:
    """Let histories happen; iterate over what came of them, in order.

    `everything`: keep the whole trace of each, and not its end alone.
    """
    work = partial(_play, size, everything)
    if workers == 1 or len(seeds) == 1:
        yield from map(work, seeds)
        return
    # Closed at once: whoever looks no further has no processes left.
    with closing(_played_elsewhere(work, seeds, workers)) as played:
        yield from played


def summary(played: Sequence[Played], size: Size, seconds: float) -> Summary:
    """Add up what came of some seeds."""
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
    """Work in a process of many histories, in which garbage is not sought among the modules."""
    if not gc.get_freeze_count():
        gc.freeze()
    return work(seed)
