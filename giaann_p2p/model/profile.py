"""Profiles: what turns text into sequences, sequences into deltas, and rows into choices.

A spec names its profile. Whoever learns texts or answers prompts asks `profiles.profile_of` for it,
and knows only this interface; stores know deltas and rows, and no profile at all.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from giaann_p2p.model.delta import Delta
from giaann_p2p.model.evaluate import Feed, Score
from giaann_p2p.model.halves import Halves
from giaann_p2p.model.manner import Manner, Variant
from giaann_p2p.model.parse import Skips
from giaann_p2p.model.rows import Neuron, Rows, Steps
from giaann_p2p.model.said import AnyToken, Stopped
from giaann_p2p.model.text import Sentence

MOST_BYTES = 1 << 32
"""The memory that the answers of a process may take together, in bytes, unless told otherwise."""
Prompt = TypeVar("Prompt")
"""A parsed prompt."""
Heard = TypeVar("Heard", contravariant=True)
"""The same, for those who only take it."""


class Learned(NamedTuple):
    """What one chunk of texts comes to."""

    sentences: int
    """The number of texts in the chunk: sentences, or several sentences each."""
    sequences: int
    skips: Skips
    delta: Delta


class Continuing(Protocol[Heard]):
    """The continuation of a prompt: `begin` comes first, then `next` for each token."""

    completion: str
    """The missing rest of the prompt's last word."""
    unknown: list[str]
    """What of the prompt was never learned."""
    stopped: Stopped | None
    """The reason why the answer has ended; None until then."""

    @property
    def nbytes(self) -> int:
        """The approximate size in memory, in bytes."""
        ...

    def begin(self, prompt: Heard, /, said: Sequence[Neuron] = ()) -> Steps[None]:
        """Hear the parsed prompt, and the tokens of the answer that were said elsewhere."""
        ...

    def next(self) -> Steps[AnyToken | None]:
        """Return the next token; None if there is none, and then `stopped` is the reason."""
        ...

    def prefetch(self, wanted: bool) -> None:
        """Have the next token come with guesses for `foreseen`, or not."""
        ...

    def foreseen(self, most: int) -> list[Neuron]:
        """Return neurons whose rows may be needed soon: `most` for each token further on."""
        ...

    def close(self) -> None:
        """Give the memory back; the answer cannot be continued."""
        ...


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an evaluation."""

    seed_tokens: int
    timing: str = "auto"
    feed: Feed = Feed.TRUE
    variant: Variant | None = None
    readout: str | None = None
    """The read-out, in a profile that has several; None: its default."""
    bits: bool = False
    """Whether to measure how many bits the text takes, too, in a profile that can."""


class Scoring(NamedTuple):
    """The evaluation of a chunk, ready to be run."""

    neurons: Iterable[Neuron]
    """The neurons whose rows it is going to need, as far as that is known; for prefetching."""
    steps: Steps[None]


class Evaluation(Protocol):
    """The evaluation of a text, chunk by chunk."""

    @property
    def score(self) -> Score:
        """The counts so far."""
        ...

    def of(self, chunk: Sequence[Sentence]) -> Scoring:
        """Parse a chunk at once; return the steps that predict it and add to the score."""
        ...


class Minds(Protocol[Heard]):
    """What all answers of a process share, within a bound on memory."""

    most_bytes: int

    @property
    def nbytes(self) -> int:
        """The approximate memory in use, in bytes."""
        ...

    def needed(self, prompt: Heard, /) -> list[Neuron]:
        """Return the neurons whose rows a parsed prompt needs at first."""
        ...

    def continuation(self, prompt: str, manner: Manner) -> Continuing[Heard]:
        """Return the continuation of a prompt; UsageError for options that the profile lacks."""
        ...

    def evaluation(self, measure: Measure) -> Evaluation:
        """Return an evaluation; UsageError for options that the profile lacks."""
        ...


class Profile(Protocol[Prompt]):
    """A way of learning and of predicting, for one spec, on one device."""

    @property
    def unit(self) -> str:
        """What becomes a sequence, in the plural."""
        ...

    @property
    def longest(self) -> int:
        """The most characters of a text in a chunk."""
        ...

    def texts(self, pieces: Iterable[bytes], name: str) -> Iterator[Sentence]:
        """Split a UTF-8 document into texts, each a sequence; TextError for another encoding."""
        ...

    def warm_up(self) -> None:
        """Load what is slow to load; PipelineError without it, or if it is not the spec's."""
        ...

    def learn(self, chunk: list[Sentence]) -> Learned:
        """Learn a chunk of texts."""
        ...

    def learned(self, chunks: Iterable[list[Sentence]], workers: int) -> Iterator[Learned]:
        """Learn chunks of texts, in order; they are parsed by so many processes."""
        ...

    def halves(self, text: Sentence, words: int) -> Halves | None:
        """Return a text's first words, and the rest as it is learned; None if it is skipped."""
        ...

    def occurrences(self, rows: Rows, counted: int) -> int:
        """Return how many tokens were learned, given the sum of all neurons' occurrences."""
        ...

    def parsed(self, prompts: Sequence[str]) -> list[Prompt]:
        """Parse prompts together; PromptError if one cannot be read."""
        ...

    def minds(self, most_bytes: int = MOST_BYTES) -> Minds[Prompt]:
        """Return what all answers of a process are to share."""
        ...


AnyProfile = Profile[Any]
AnyMinds = Minds[Any]
