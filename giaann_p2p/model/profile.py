"""Profiles: what turns text into sequences, sequences into deltas, and rows into choices.

A spec names its profile. Code that learns texts or answers prompts gets it from
`profiles.profile_of`, and knows only this interface; stores know deltas and rows, but no profile.
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
"""The default bound on the memory of all answers of a process, in bytes."""
Prompt = TypeVar("Prompt")
"""A parsed prompt."""
Heard = TypeVar("Heard", contravariant=True)
"""A parsed prompt, for an interface that only receives it."""


class Learned(NamedTuple):
    """The result of learning one chunk of texts."""

    sentences: int
    """The number of texts in the chunk; a text is a sentence, or in `subwords` several."""
    sequences: int
    skips: Skips
    delta: Delta


class Continuing(Protocol[Heard]):
    """The continuation of a prompt: `begin` comes first, then `next` for each token."""

    completion: str
    """The missing rest of the prompt's last word."""
    unknown: list[str]
    """The parts of the prompt that were never learned."""
    stopped: Stopped | None
    """The reason why the answer has ended; None until then."""

    @property
    def nbytes(self) -> int:
        """The approximate size in memory, in bytes."""
        ...

    def begin(self, prompt: Heard, /, said: Sequence[Neuron] = ()) -> Steps[None]:
        """Hear the parsed prompt, and the tokens of the answer that another peer chose before."""
        ...

    def next(self) -> Steps[AnyToken | None]:
        """Return the next token; None if there is none, and then `stopped` is the reason."""
        ...

    def prefetch(self, wanted: bool) -> None:
        """Set whether to make guesses for `foreseen` with the next token."""
        ...

    def foreseen(self, most: int) -> list[Neuron]:
        """Return neurons whose rows may be needed soon: at most `most` for each token ahead."""
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
    """Whether to measure the bits that the text takes, too, in a profile that supports it."""


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
        """The name of what becomes a sequence, in the plural: `sentences` or `texts`."""
        ...

    @property
    def longest(self) -> int:
        """The most characters of a text in a chunk."""
        ...

    def texts(self, pieces: Iterable[bytes], name: str) -> Iterator[Sentence]:
        """Split a UTF-8 document into texts, each a sequence; TextError for another encoding."""
        ...

    def warm_up(self) -> None:
        """Load the parts that load slowly; PipelineError if one is missing or not the spec's."""
        ...

    def learn(self, chunk: list[Sentence]) -> Learned:
        """Learn a chunk of texts."""
        ...

    def learned(self, chunks: Iterable[list[Sentence]], workers: int) -> Iterator[Learned]:
        """Learn chunks of texts, in order, parsing them in this many processes."""
        ...

    def halves(self, text: Sentence, words: int) -> Halves | None:
        """Return a text's first words, and the rest as it is learned; None if it is skipped."""
        ...

    def occurrences(self, rows: Rows, counted: int) -> int:
        """Return how many tokens were learned; `counted` is the sum of all neurons' occurrences."""
        ...

    def parsed(self, prompts: Sequence[str]) -> list[Prompt]:
        """Parse prompts together; PromptError if one cannot be read."""
        ...

    def minds(self, most_bytes: int = MOST_BYTES) -> Minds[Prompt]:
        """Return what all answers of a process share."""
        ...


AnyProfile = Profile[Any]
AnyMinds = Minds[Any]
