"""Profiles: what turns text into sequences, sequences into deltas, and rows into choices.

A spec names its profile. Whoever learns texts or answers prompts asks `profiles.profile_of` for it,
and knows only this interface; stores know deltas and rows, and no profile at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec
import torch

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.evaluate import Feed, Score
from giaann_p2p.model.manner import Manner, Variant
from giaann_p2p.model.parse import Skips
from giaann_p2p.model.rows import Rows, Steps
from giaann_p2p.model.said import Stopped, Token
from giaann_p2p.model.subwords.said import SubwordToken
from giaann_p2p.model.text import Sentence


class Learned(NamedTuple):
    """What one chunk of texts comes to."""

    sentences: int
    """The number of texts in the chunk: sentences, or several sentences each."""
    sequences: int
    skips: Skips
    delta: Delta


class Continuing(Protocol):
    """The continuation of a prompt: `begin` comes first, then `next` for each token."""

    completion: str
    """The missing rest of the prompt's last word."""
    unknown: list[str]
    """What of the prompt was never learned."""
    stopped: Stopped | None
    """The reason why the answer has ended; None until then."""

    def next(self) -> Steps[Token | SubwordToken | None]:
        """Return the next token; None if there is none, and then `stopped` is the reason."""
        ...


class Begun(NamedTuple):
    """A continuation, and the steps that hear its prompt; they must be run first."""

    going_on: Continuing
    steps: Steps[None]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an evaluation."""

    seed_tokens: int
    timing: str = "auto"
    feed: Feed = Feed.TRUE
    variant: Variant | None = None
    readout: str | None = None
    """The read-out, in a profile that has several; None: its default."""


class Evaluation(Protocol):
    """The evaluation of a text, chunk by chunk."""

    @property
    def score(self) -> Score:
        """The counts so far."""
        ...

    def of(self, chunk: Sequence[Sentence]) -> Steps[None]:
        """Parse a chunk at once; return the steps that predict it and add to the score."""
        ...


class Profile(Protocol):
    """A way of learning and of predicting, for one spec."""

    @property
    def unit(self) -> str:
        """What becomes a sequence, in the plural."""
        ...

    def texts(self, pieces: Iterable[bytes], name: str) -> Iterator[Sentence]:
        """Split a UTF-8 document into texts, each a sequence; TextError for another encoding."""
        ...

    def warm_up(self) -> None:
        """Load what is slow to load."""
        ...

    def learned(
        self, chunks: Iterable[list[Sentence]], workers: int, device: torch.device
    ) -> Iterator[Learned]:
        """Learn chunks of texts, in order; they are parsed by so many processes."""
        ...

    def occurrences(self, rows: Rows, counted: int) -> int:
        """Return how many tokens were learned, given the sum of all neurons' occurrences."""
        ...

    def continuation(self, prompt: str, manner: Manner, device: torch.device) -> Begun:
        """Return the continuation of a prompt."""
        ...

    def evaluation(self, measure: Measure, device: torch.device) -> Evaluation:
        """Return an evaluation with these options; UsageError for one that it lacks."""
        ...
