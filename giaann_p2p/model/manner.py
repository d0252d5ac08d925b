"""The options of generating an answer: its length, timing, beam and variant."""

from enum import StrEnum
from typing import Annotated

import msgspec

from giaann_p2p.errors import UsageError

MOST_TOKENS = 1 << 16


class Timing(StrEnum):
    """The condition on the previous segment under which a feature segment can be hit."""

    EXACT = "exact"
    """The previous segment was hit by the last token: recalls only what was learned word for
    word."""
    SEQ = "seq"
    """The previous segment was hit at any time before: the same words in order, with gaps."""
    NONE = "none"
    """There is no condition on the previous segment."""
    BIASED = "biased"
    """There is no condition, but segments that were hit at the wrong time reduce the score."""

    @property
    def ordered(self) -> bool:
        """Whether segments wait for one another."""
        return self in (Timing.EXACT, Timing.SEQ)

    @property
    def timed(self) -> bool:
        """Whether the time of a hit matters."""
        return self in (Timing.EXACT, Timing.BIASED)


AUTO: tuple[Timing, ...] = (Timing.EXACT, Timing.SEQ, Timing.NONE)
"""The order in which `auto` tries timings: from exact memory to guesses."""

TIMINGS = ("auto", *Timing)


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """Whether strengths and activations count by their amount, or only as yes or no."""

    graded_strengths: bool = False
    """Whether a stronger connection passes on more activation; otherwise all pass on the same."""
    graded_activations: bool = False
    """Whether a feature segment adds up its inputs; otherwise it is active or not."""


class Beam(msgspec.Struct, frozen=True, kw_only=True):
    """A beam search: follow the `width` best paths for `depth` tokens, then take the first step."""

    width: int = 3
    depth: int = 3

    def __post_init__(self) -> None:
        if self.width < 1 or self.depth < 1:
            raise UsageError(f"a beam's width and depth must be 1 or more: {self}")


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """The options of generating an answer."""

    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)] = 80
    timing: str = "auto"
    beam: Beam | None = None
    variant: Variant = Variant()

    def __post_init__(self) -> None:
        if not 1 <= self.max_tokens <= MOST_TOKENS:
            raise UsageError(f"max_tokens must be 1 to {MOST_TOKENS:,}: {self.max_tokens}")
        self.timings()  # raises UsageError for an unknown timing

    def timings(self) -> tuple[Timing, ...]:
        """Return the timings to try, in order."""
        return timings(self.timing)


def require_plain(manner: Manner) -> None:
    """Raise UsageError for options that only the profile `words` has."""
    if manner.timing != "auto" or manner.beam or manner.variant != Variant():
        raise UsageError(
            "timings, beams and variants are of the profile words; this model has subwords"
        )


def timings(name: str) -> tuple[Timing, ...]:
    """Return the timings that a name stands for; UsageError for an unknown name."""
    if name == "auto":
        return AUTO
    try:
        return (Timing(name),)
    except ValueError:
        raise UsageError(f"no timing {name!r}; there are {', '.join(TIMINGS)}") from None
