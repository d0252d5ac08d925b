"""The open leases of a job: which worker leases which chunk, and until when."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass


@dataclass
class Held:
    """One worker's lease of a chunk."""

    start: float
    """Time at which the lease began."""
    until: float
    """Time at which the lease expires; heartbeats prolong it."""


class Leases:
    """The open leases of a job; a chunk may have several.

    Invariants: every chunk in `_held` has at least one lease, and `_count` is the number of leases.
    """

    def __init__(self) -> None:
        self._held: dict[int, dict[bytes, Held]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, chunk: int) -> bool:
        return chunk in self._held

    def __repr__(self) -> str:
        return f"<Leases: {self._count:,} of {len(self._held):,} chunks>"

    @property
    def chunks(self) -> Collection[int]:
        """The chunks that have at least one lease."""
        return self._held.keys()

    @property
    def ends(self) -> list[float]:
        """The times at which the leases expire, in no particular order."""
        return [lease.until for leases in self._held.values() for lease in leases.values()]

    def holders(self, chunk: int) -> Collection[bytes]:
        """Return the workers that lease a chunk, in the order in which their leases began."""
        return self._held.get(chunk, {}).keys()

    def of(self, worker: bytes, chunk: int) -> Held | None:
        """Return a worker's lease of a chunk, or None if it has none."""
        return self._held.get(chunk, {}).get(worker)

    def begin(self, worker: bytes, chunk: int, lease: Held) -> None:
        """Record a worker's new lease of a chunk."""
        self._held.setdefault(chunk, {})[worker] = lease
        self._count += 1

    def end(self, worker: bytes, chunk: int) -> None:
        """End a worker's lease of a chunk; the lease must exist."""
        del self._held[chunk][worker]
        if not self._held[chunk]:
            del self._held[chunk]
        self._count -= 1

    def lapsed(self, now: float) -> list[tuple[bytes, int]]:
        """Return the worker and the chunk of each lease that has expired."""
        return [
            (worker, chunk)
            for chunk, leases in self._held.items()
            for worker, lease in leases.items()
            if lease.until <= now
        ]

    def single(self, wait: float) -> Iterator[tuple[float, int]]:
        """Yield each chunk with only one lease, as (time, chunk).

        The time is when the lease is `wait` seconds old.
        """
        for chunk, leases in self._held.items():
            if len(leases) == 1:
                (lease,) = leases.values()
                yield lease.start + wait, chunk
