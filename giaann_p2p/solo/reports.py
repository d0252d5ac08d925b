"""The results of a brain's work, as plain values that are printed as text or as JSON."""

from dataclasses import dataclass, field

import msgspec

from giaann_p2p.model.parse import Skips
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.jobs import Job


@dataclass
class Trained:
    """The result of learning a text."""

    name: str
    size: int
    """The size of the text in bytes."""
    sentences: int = 0
    sequences: int = 0
    chunks: int = 0
    chunks_known: int = 0
    """The number of chunks already learned from this text; they are not learned again."""
    skips: Skips = field(default_factory=Skips)
    seconds: float = 0.0
    interrupted: bool = False
    unit: str = "sentences"
    """What `sentences` counts: single sentences, or texts of several sentences."""

    @property
    def known(self) -> bool:
        """Whether the text had no new chunks."""
        return self.chunks_known > 0 and not self.chunks and not self.interrupted


@dataclass(frozen=True)
class Info:
    """Counts of a brain's knowledge."""

    spec: ModelSpec
    digest: str
    columns: int
    neurons: int
    connections: int
    occurrences: int
    words: int
    texts: list[Job]
    """The learned texts, each with the number of its chunks."""
    file_bytes: int


class Connection(msgspec.Struct, frozen=True):
    """A connection by name; the feature of a prime neuron is None."""

    source_concept: str
    source_feature: str | None
    target_concept: str
    target_feature: str | None
    branch: int
    segment: int
    strength: float
    units: int
    """The exact strength, in units of 2^-16."""
