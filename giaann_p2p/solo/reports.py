"""What the brain's work comes to, as plain values: for people and, as JSON, for machines."""

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from giaann_p2p.model.activation import Timing
from giaann_p2p.model.parse import Skips
from giaann_p2p.model.rows import Name
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.solo.jobs import Job


@dataclass
class Trained:
    """What came of learning a text."""

    name: str
    size: int
    """In bytes."""
    sentences: int = 0
    sequences: int = 0
    chunks: int = 0
    chunks_known: int = 0
    """Chunks that the brain had learned from this text before; they are not learned again."""
    skips: Skips = field(default_factory=Skips)
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def known(self) -> bool:
        """Whether there was nothing new."""
        return self.chunks_known > 0 and not self.chunks and not self.interrupted


class Token(NamedTuple):
    """A word of an answer, and what speaks for it."""

    text: str
    """What it adds to the text, with the space before it."""
    word: str
    name: Name
    timing: Timing
    score: float
    candidates: int
    """How many words there were to choose from."""


@dataclass(frozen=True)
class Generation:
    """An answer."""

    prompt: str
    tokens: list[Token]
    completion: str = ""
    """What the prompt's last word lacked, as `civil war` behind "the Spanish"."""
    unknown: list[str] = field(default_factory=list)
    """What of the prompt was never learned: `zorp` for a noun, `company/the` for a word of its
    column."""
    stopped: str = "end"
    """Why it ends: `end` (nothing more comes to mind) or `limit` (max_tokens)."""

    @property
    def text(self) -> str:
        """The answer as text, to be put behind the prompt."""
        return self.completion + "".join(token.text for token in self.tokens)


@dataclass(frozen=True)
class Info:
    """What a brain holds."""

    spec: ModelSpec
    digest: str
    columns: int
    neurons: int
    connections: int
    occurrences: int
    words: int
    texts: list[Job]
    """What was learned, each with the number of its chunks."""
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
