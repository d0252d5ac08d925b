"""In which manner an answer is to be found."""

from enum import StrEnum
from typing import Annotated

import msgspec

from giaann_p2p.errors import UsageError

MOST_TOKENS = 1 << 16


class Timing(StrEnum):
    """What a feature segment demands of the one before it."""

    EXACT = "exact"
    """Hit by the very last token: only what was learned word for word."""
    SEQ = "seq"
    """Hit at some time before: the same words in the same order, with gaps."""
    NONE = "none"
    """Nothing."""
    BIASED = "biased"
    """Nothing, but what was hit at the wrong time scores less."""

    @property
    def ordered(self) -> bool:
        """Whether segments wait for one another."""
        return self in (Timing.EXACT, Timing.SEQ)

    @property
    def timed(self) -> bool:
        """Whether it matters when a segment was hit."""
        return self in (Timing.EXACT, Timing.BIASED)


AUTO: tuple[Timing, ...] = (Timing.EXACT, Timing.SEQ, Timing.NONE)
"""The order in which `auto` asks: from what is remembered to what is a guess."""

TIMINGS = ("auto", *Timing)


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """How much the amount of a strength or an activation counts."""

    graded_strengths: bool = False
    """A connection passes on more, the stronger it is; else any passes on the same."""
    graded_activations: bool = False
    """A feature segment adds up what reaches it; else it is active or not."""


class Beam(msgspec.Struct, frozen=True, kw_only=True):
    """Looking ahead: follow the `width` best ways for `depth` tokens, then take the first step."""

    width: int = 3
    depth: int = 3

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 1:
            raise UsageError(f"a beam's width and depth must be 1 or more: {self}")


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer is to be found."""

    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)] = 80
    timing: str = "auto"
    beam: Beam | None = None
    variant: Variant = Variant()

    def __post_init__(self) -> None:
        if not 1 <= self.max_tokens <= MOST_TOKENS:
            raise UsageError(f"max_tokens must be 1 to {MOST_TOKENS:,}: {self.max_tokens}")
        self.timings()  # names what cannot be

    def timings(self) -> tuple[Timing, ...]:
        """Return the timings that are asked in turn."""
        return timings(self.timing)


def timings(name: str) -> tuple[Timing, ...]:
    """Return the timings that a name stands for."""
    if name == "auto":
        return AUTO
    try:
        return (Timing(name),)
    except ValueError:
        raise UsageError(f"no timing {name!r}; there are {', '.join(TIMINGS)}") from None
