"""The progress and the result of training a swarm on a text, as plain values."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from giaann_p2p.errors import PeerError
from giaann_p2p.solo.reports import Trained


class Lacking(StrEnum):
    """What a stalled training job waits for."""

    COMPUTE = "compute peers"
    STORAGE = "storage peers"
    ROOM = "room at the storage peers"
    KEEPERS = "storage peers that went away"


class LackingPeers(PeerError):  # noqa: N818  (what it is, not what went wrong)
    """Training gave up waiting for peers, or for room at them; what was learned is kept."""


class TrainProgress(NamedTuple):
    """The progress of a training job."""

    share: float
    """Share of the text that is learned, 0 to 1; an estimate until the whole text has been read."""
    committed: int
    """Number of committed chunks, including those committed before this job began."""
    chunks: int | None
    """Number of chunks of the text; None until the whole text has been read."""
    peers: int
    """Number of compute peers that have a chunk to learn."""
    rate: float
    """Average number of sentences learned per second since the job began."""
    lacking: Lacking | None = None
    """What the job waits for; None if the job is not stalled."""
    remedy: str = ""
    """If the job is stalled: why, and what to do about it."""


class GivenUp(NamedTuple):
    """A chunk that training gave up, because no compute peer could learn it."""

    line: int
    """Number of the line of the text at which the chunk begins."""
    reasons: tuple[str, ...]
    """Why compute peers could not learn the chunk."""


@dataclass
class TrainReport(Trained):
    """The result of training a swarm on a text."""

    epoch: int = 1
    job: bytes = b""
    """The id of the job under which the text is learned."""
    pushed: int = 0
    """Number of bytes pushed to the owners of the shards."""
    checked: int = 0
    """Number of chunks that more than one compute peer learned, and so checked."""
    liars: set[str] = field(default_factory=set)
    """Compute peers that others contradicted: their result for a chunk was different. They got no
    more chunks."""
    unbrought: dict[str, int] = field(default_factory=dict)
    """Compute peers that reported chunks as committed that no owner had in the end, each with the
    number of such chunks. They got no more chunks."""
    given_up: dict[int, GivenUp] = field(default_factory=dict)
    """Chunks that could not be learned, by chunk number. Training on the same text again retries
    them."""

    @property
    def complete(self) -> bool:
        """Whether training ended with all of the text learned."""
        return not (self.interrupted or self.given_up)
