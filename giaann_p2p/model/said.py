"""The answer to a prompt, as plain values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from giaann_p2p.model.rows import Name
from giaann_p2p.model.subwords.said import SubwordToken
from giaann_p2p.model.tier import Tier

Stopped = Literal["end", "limit"]


class Token(NamedTuple):
    """A word of an answer, with its evidence, score and probability."""

    text: str
    """The string that the token appends to the text, including the space before it."""
    word: str
    name: Name
    timing: Tier
    """The evidence for it: a timing, or counts alone."""
    score: float
    """The sum of its activation; 0 if counts chose it."""
    candidates: int
    """The number of candidates that the token was chosen from."""
    probability: float
    """This word's share of all times that a candidate followed the last word, or occurred."""


AnyToken = Token | SubwordToken
"""A token of either profile."""


@dataclass(frozen=True)
class Generation:
    """A complete answer."""

    prompt: str
    tokens: Sequence[AnyToken]
    completion: str = ""
    """The missing rest of the prompt's last word: ` civil war` after "the Spanish"."""
    unknown: list[str] = field(default_factory=list)
    """The neurons of the prompt that were never learned: `zorp` for a noun, `company/the` for a
    word of its column."""
    stopped: Stopped = "end"
    """The reason why the answer ended: `end` (nothing follows) or `limit` (max_tokens)."""

    @property
    def text(self) -> str:
        """The answer as text, to be appended to the prompt."""
        return self.completion + "".join(token.text for token in self.tokens)
