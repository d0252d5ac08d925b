"""The workers of a job: the chunks that each leases, and the queue of workers for the next chunk.

The queue holds the workers that have a free slot and are not silent. A worker that gets a chunk
goes to the end of the queue.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field


@dataclass
class Worker:
    """One worker's state."""

    slots: int
    """Maximum number of chunks that the worker works on at a time."""
    heard: float
    """Time of the worker's last sign of life."""
    silent: bool = False
    """Whether the worker is silent: it gets no chunk until its next sign of life."""
    chunks: set[int] = field(default_factory=set)
    """The chunks that the worker leases."""

    @property
    def free(self) -> bool:
        """Whether the worker has a free slot."""
        return len(self.chunks) < self.slots


class Roster:
    """A job's workers by id.

    Invariant: `_idle` has the workers that have a free slot and are not silent. Only `join` may
    break it, until the next call of `hear`.
    """

    def __init__(self) -> None:
        self._workers: dict[bytes, Worker] = {}
        self._idle: dict[bytes, None] = {}

    def __len__(self) -> int:
        return len(self._workers)

    def __contains__(self, worker: bytes) -> bool:
        return worker in self._workers

    def __getitem__(self, worker: bytes) -> Worker:
        return self._workers[worker]

    def __repr__(self) -> str:
        return f"<Roster: {len(self._workers):,} workers, {len(self._idle):,} in the queue>"

    @property
    def idle(self) -> Collection[bytes]:
        """The queue of workers for the next chunk, first in line first."""
        return self._idle.keys()

    def awake(self) -> Iterator[bytes]:
        """Yield the workers that are not silent."""
        return (worker for worker, known in self._workers.items() if not known.silent)

    def join(self, worker: bytes, slots: int, now: float) -> None:
        """Add a worker, or change its number of slots; call `hear` next, to update the queue."""
        self._workers.setdefault(worker, Worker(slots, now)).slots = slots

    def leave(self, worker: bytes) -> None:
        """Forget a worker."""
        del self._workers[worker]
        self._idle.pop(worker, None)

    def hear(self, worker: bytes, now: float) -> None:
        """Record a sign of life of a worker, and queue the worker if it has a free slot."""
        self._workers[worker].heard = now
        self._workers[worker].silent = False
        self._queue(worker)

    def silence(self, worker: bytes) -> None:
        """Mark a worker silent: it gets no chunk until its next sign of life."""
        self._workers[worker].silent = True
        self._queue(worker)

    def take(self, worker: bytes, chunk: int) -> None:
        """Record that a worker got a chunk; if it has a slot left, queue it again, at the end."""
        self._workers[worker].chunks.add(chunk)
        self._idle.pop(worker, None)  # so that it joins the end of the queue
        self._queue(worker)

    def give_back(self, worker: bytes, chunk: int) -> None:
        """Record that a worker no longer has a chunk."""
        self._workers[worker].chunks.discard(chunk)
        self._queue(worker)

    def _queue(self, worker: bytes) -> None:
        known = self._workers[worker]
        if known.free and not known.silent:
            self._idle.setdefault(worker)
        else:
            self._idle.pop(worker, None)
