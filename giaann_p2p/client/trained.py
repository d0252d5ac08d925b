"""The result of training on a text, and its progress meanwhile, as plain values."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from giaann_p2p.errors import PeerError
from giaann_p2p.solo.reports import Trained


class Lacking(StrEnum):
    """The peers or the room that a job waits for."""

    COMPUTE = "compute peers"
    STORAGE = "storage peers"
    ROOM = "room at the storage peers"
    KEEPERS = "storage peers that went away"


class LackingPeers(PeerError):  # noqa: N818  (what it is, not what went wrong)
    """No peer can learn the text, or no peer has room for it; learned chunks are kept."""


class TrainProgress(NamedTuple):
    """The progress of a job."""

    share: float
    """Learned share of the text, 0 to 1; an estimate until the text has been read to its end."""
    committed: int
    """Number of committed chunks, those known before included."""
    chunks: int | None
    """Number of all chunks of the text; None until it has been read to its end."""
    peers: int
    """Number of compute peers that have a chunk."""
    rate: float
    """Sentences per second since the start of the job."""
    lacking: Lacking | None = None
    """What the job waits for; None if the job is not stalled."""
    remedy: str = ""
    """Reason and advice, if the job is stalled."""


class GivenUp(NamedTuple):
    """A chunk that no compute peer could learn."""

    line: int
    """Number of the line of the text at which the chunk begins."""
    reasons: tuple[str, ...]


@dataclass
class TrainReport(Trained):
    """The result of training a swarm on a text."""

    epoch: int = 1
    pushed: int = 0
    """Number of bytes pushed to the owners of the shards."""
    checked: int = 0
    """Number of chunks that more than one peer learned independently."""
    liars: set[str] = field(default_factory=set)
    """Compute peers whose result differed from that of the other peers; they got no more chunks."""
    unbrought: dict[str, int] = field(default_factory=dict)
    """Compute peers that reported chunks as committed that no owner knew of in the end, each with
    the number of these chunks; they got no more chunks."""
    given_up: dict[int, GivenUp] = field(default_factory=dict)
    """Chunks that could not be learned, by number. Training on the same text again retries these
    chunks."""

    @property
    def complete(self) -> bool:
        """Whether the swarm has learned all of the text."""
        return not (self.interrupted or self.given_up)
