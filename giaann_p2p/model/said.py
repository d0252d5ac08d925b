"""What comes of a prompt, as plain values."""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from giaann_p2p.model.manner import Timing
from giaann_p2p.model.rows import Name

Stopped = Literal["end", "limit"]


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
    stopped: Stopped = "end"
    """Why it ends: `end` (nothing more comes to mind) or `limit` (max_tokens)."""

    @property
    def text(self) -> str:
        """The answer as text, to be put behind the prompt."""
        return self.completion + "".join(token.text for token in self.tokens)
