"""The decisions of a `Schedule`, which its coordinator carries out."""

from typing import NamedTuple


class Lease(NamedTuple):
    """Have a worker learn a chunk; the lease expires at `until` unless a heartbeat prolongs it."""

    worker: bytes
    chunk: int
    until: float


class Revoke(NamedTuple):
    """Stop a worker's work on a chunk: the chunk is done, or the worker has no lease of it."""

    worker: bytes
    chunk: int


class GaveUp(NamedTuple):
    """A chunk has failed for good, with the reasons."""

    chunk: int
    reasons: tuple[str, ...]


class Finished(NamedTuple):
    """All chunks are committed, or failed for good. It is emitted once."""


Action = Lease | Revoke | GaveUp | Finished
