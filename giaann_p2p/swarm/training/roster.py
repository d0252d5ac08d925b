"""The workers of a job: their chunks, and the queue for the next one.

The queue holds the workers that have a free slot and are not silent. A worker that gets a chunk
goes to the end of the queue.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field


@dataclass
class Worker:
    """One worker's state."""

    slots: int
    """Number of chunks that the worker takes at a time."""
    heard: float
    """Time at which the worker was last heard of."""
    silent: bool = False
    """Whether the worker gets no chunk until it is heard of again."""
    chunks: set[int] = field(default_factory=set)
    """Chunks that the worker leases."""

    @property
    def free(self) -> bool:
        """Whether the worker has a free slot."""
        return len(self.chunks) < self.slots


class Roster:
    """Workers by id. Invariant after each event: `_idle` has the free ones that are not silent."""

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
        """The queue, in the order in which it is served."""
        return self._idle.keys()

    def awake(self) -> Iterator[bytes]:
        """Return the workers that are not silent."""
        return (worker for worker, known in self._workers.items() if not known.silent)

    def join(self, worker: bytes, slots: int, now: float) -> None:
        """Add a worker, or change its number of slots; `hear` puts it into the queue."""
        self._workers.setdefault(worker, Worker(slots, now)).slots = slots

    def leave(self, worker: bytes) -> None:
        """Forget a worker."""
        del self._workers[worker]
        self._idle.pop(worker, None)

    def hear(self, worker: bytes, now: float) -> None:
        """Record that a worker was heard of."""
        self._workers[worker].heard = now
        self._workers[worker].silent = False
        self._queue(worker)

    def silence(self, worker: bytes) -> None:
        """Mark a worker silent: it gets no chunk until it is heard of."""
        self._workers[worker].silent = True
        self._queue(worker)

    def take(self, worker: bytes, chunk: int) -> None:
        """Record that a worker got a chunk; with a slot left, queue the worker at the end."""
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
