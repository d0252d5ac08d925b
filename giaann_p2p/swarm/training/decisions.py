"""The actions that a `Schedule` returns, for its coordinator to carry out."""

from typing import NamedTuple


class Lease(NamedTuple):
    """Order a worker to learn a chunk. Heartbeats may prolong the lease beyond `until`."""

    worker: bytes
    chunk: int
    until: float


class Revoke(NamedTuple):
    """Order a worker to stop work on a chunk that is done, or of which the worker has no lease."""

    worker: bytes
    chunk: int


class GaveUp(NamedTuple):
    """A chunk has failed for good, for these reasons."""

    chunk: int
    reasons: tuple[str, ...]


class Finished(NamedTuple):
    """Every chunk of the job is committed, or has failed for good. It is returned only once."""


Action = Lease | Revoke | GaveUp | Finished
