"""What having a text learned came to, and how it goes meanwhile: plain values."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from giaann_p2p.errors import PeerError
from giaann_p2p.solo.reports import Trained


class Lacking(StrEnum):
    """Whom a job waits for."""

    COMPUTE = "compute peers"
    STORAGE = "storage peers"


class LackingPeers(PeerError):  # noqa: N818  (what it is, not what went wrong)
    """Nobody is there to learn, or to keep what is learned; what was learned so far is kept."""


class Standing(NamedTuple):
    """How far a job is."""

    share: float
    """Of the text, from 0 to 1: how much is learned. An estimate until all of it was read."""
    committed: int
    """Chunks that are learned, those that were known before among them."""
    chunks: int | None
    """How many there are; None until the text was read to its end."""
    peers: int
    """Compute peers that are at work."""
    rate: float
    """Sentences a second, since it began."""
    lacking: Lacking | None = None
    """Whom it waits for."""


class GivenUp(NamedTuple):
    """A chunk that nobody could learn."""

    line: int
    """The first one of it in the text."""
    reasons: tuple[str, ...]


@dataclass
class Taught(Trained):
    """What came of having a text learned by a swarm."""

    epoch: int = 1
    pushed: int = 0
    """Bytes that it took to bring what was learned to its owners."""
    checked: int = 0
    """Chunks that more than one peer learned, each by itself."""
    liars: set[str] = field(default_factory=set)
    """The peers that came to something else than others did; they learned no more."""
    unbrought: dict[str, int] = field(default_factory=dict)
    """The peers that said they had brought chunks to their owners, none of whom knew of them in the
    end, and how many chunks; they learned no more."""
    given_up: dict[int, GivenUp] = field(default_factory=dict)
    """By the chunk's number. To train the text again tries them again."""

    @property
    def complete(self) -> bool:
        """Whether the swarm has learned all of the text."""
        return not (self.interrupted or self.given_up)
