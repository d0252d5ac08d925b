"""What a schedule decides, for its coordinator to carry out."""

from typing import NamedTuple


class Lease(NamedTuple):
    """Let a worker learn a chunk; it is to be heard of before `until`."""

    worker: bytes
    chunk: int
    until: float


class Revoke(NamedTuple):
    """Let a worker stop: the chunk is done, or somebody else's."""

    worker: bytes
    chunk: int


class GaveUp(NamedTuple):
    """A chunk has failed for good."""

    chunk: int
    reasons: tuple[str, ...]


class Finished(NamedTuple):
    """All chunks are committed, or failed for good. It is said once."""


Action = Lease | Revoke | GaveUp | Finished
