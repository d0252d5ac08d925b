"""The workers of a job: what each is at, and who stands in the queue for the next chunk.

Who has a slot free stands in it, but for those that are silent; who got a chunk goes to its end.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field


@dataclass
class Worker:
    """What is known of it."""

    slots: int
    heard: float
    silent: bool = False
    """It gets nothing until it is heard of."""
    chunks: set[int] = field(default_factory=set)

    @property
    def free(self) -> bool:
        """Whether it has a slot for one more chunk."""
        return len(self.chunks) < self.slots


class Roster:
    """See the module."""

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
        """The queue, the first to be served first."""
        return self._idle.keys()

    def awake(self) -> Iterator[bytes]:
        """Return the workers that are not silent."""
        return (worker for worker, known in self._workers.items() if not known.silent)

    def join(self, worker: bytes, slots: int, now: float) -> None:
        """Know a worker, or that it has other slots now."""
        self._workers.setdefault(worker, Worker(slots, now)).slots = slots

    def leave(self, worker: bytes) -> None:
        """Forget a worker."""
        del self._workers[worker]
        self._idle.pop(worker, None)

    def hear(self, worker: bytes, now: float) -> None:
        """Note that a worker is there."""
        self._workers[worker].heard = now
        self._workers[worker].silent = False
        self._queue(worker)

    def silence(self, worker: bytes) -> None:
        """Give a worker nothing until it is heard of."""
        self._workers[worker].silent = True
        self._queue(worker)

    def take(self, worker: bytes, chunk: int) -> None:
        """Note that a worker got a chunk."""
        self._workers[worker].chunks.add(chunk)
        self._idle.pop(worker, None)  # and behind all others, if it is free still
        self._queue(worker)

    def give_back(self, worker: bytes, chunk: int) -> None:
        """Note that a worker no longer has a chunk."""
        self._workers[worker].chunks.discard(chunk)
        self._queue(worker)

    def _queue(self, worker: bytes) -> None:
        known = self._workers[worker]
        if known.free and not known.silent:
            self._idle.setdefault(worker)
        else:
            self._idle.pop(worker, None)
