"""The options of generating an answer: its length, timing, beam and variant."""

from enum import StrEnum
from numbers import Integral, Real
from typing import Annotated

import msgspec

from giaann_p2p.errors import UsageError

MOST_TOKENS = 1 << 16
MOST_PROMPT = 1 << 14
"""Maximum length of a stranger's prompt, in characters; parsing takes 50 ms for each thousand."""
MOST_BEAM = 64
"""Maximum width times depth of a stranger's beam search: the number of rows read for a token."""
_MOST_STOPS, _LONGEST_STOP = 16, 256
_STOPS = f"a list of at most {_MOST_STOPS} texts of 1 to {_LONGEST_STOP} characters"
_MOST_SEED = (1 << 63) - 1
MOST_RIVALS = 20
MOST_ANSWERS = 100


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


class Sampling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a token is drawn by its probability, in the profile `subwords`."""

    temperature: float = 0.0
    """Scores are divided by it before a token is drawn: higher is more varied; 0: take the best."""
    top_k: int = 0
    """How many of the best tokens may be drawn; 0: all."""
    top_p: float = 1.0
    """Only the best tokens may be drawn: the fewest that together have this share of all odds."""
    seed: int = 0
    """Seeds the draws: the same seed yields the same answer."""
    repetition_penalty: float = 1.0
    """Divides the odds of each token that was read lately."""
    stop: Annotated[tuple[str, ...], msgspec.Meta(max_length=_MOST_STOPS)] = ()
    """An answer ends before the token with which it would contain one of these texts."""
    rivals: int = 0
    """How many of the best candidates to return with each token; it may be one of them."""

    def __post_init__(self) -> None:
        rules = {
            "temperature must be 0 to 100": _is_number(self.temperature, 0, 100),
            "top_k must be a whole number, 0 or more": _is_whole(self.top_k, 0, 1 << 20),
            "top_p must be above 0 and at most 1": _is_number(self.top_p, 0, 1) and self.top_p > 0,
            "seed must be a whole number from 0 to 2^63 - 1": _is_whole(self.seed, 0, _MOST_SEED),
            "repetition_penalty must be 1 to 100": _is_number(self.repetition_penalty, 1, 100),
            f"rivals must be a whole number from 0 to {MOST_RIVALS}": (
                _is_whole(self.rivals, 0, MOST_RIVALS)
            ),
            f"stop must be {_STOPS}": _are_stops(self.stop),
        }
        for rule, kept in rules.items():
            if not kept:
                raise UsageError(f"{rule}; it is {getattr(self, rule.split()[0])}")

    def each(self, answers: int) -> "list[Sampling]":
        """Return the settings for several answers: their seeds are consecutive.

        UsageError if all answers would be the same.
        """
        if not 1 <= answers <= MOST_ANSWERS:
            raise UsageError(f"the number of answers must be 1 to {MOST_ANSWERS}: {answers}")
        if answers > 1 and not self.temperature:
            raise UsageError("without a temperature all answers are the same: give one above 0")
        seeds = range(self.seed, self.seed + answers)
        return [msgspec.structs.replace(self, seed=seed) for seed in seeds]


def _is_number(value: object, least: float, most: float) -> bool:
    return isinstance(value, Real) and least <= float(value) <= most


def _is_whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, Integral) and least <= int(value) <= most


def _are_stops(value: object) -> bool:
    """Return whether a value is texts to stop at; a single text is not taken for its letters."""
    return (
        isinstance(value, tuple | list)
        and len(value) <= _MOST_STOPS
        and all(isinstance(text, str) and 0 < len(text) <= _LONGEST_STOP for text in value)
    )


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """The options of generating an answer."""

    max_tokens: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)] = 80
    timing: str = "auto"
    beam: Beam | None = None
    variant: Variant = Variant()
    sampling: Sampling = Sampling()

    def __post_init__(self) -> None:
        if not 1 <= self.max_tokens <= MOST_TOKENS:
            raise UsageError(f"max_tokens must be 1 to {MOST_TOKENS:,}: {self.max_tokens}")
        self.timings()  # raises UsageError for an unknown timing

    def timings(self) -> tuple[Timing, ...]:
        """Return the timings to try, in order."""
        return timings(self.timing)


def require(manner: Manner, profile: str) -> None:
    """Raise UsageError for options that a profile lacks."""
    if profile == "words":
        if manner.sampling != Sampling():
            raise UsageError(
                "temperature, top_k, top_p, seed, repetition_penalty and stop need the profile"
                " subwords; this model has words"
            )
    elif manner.timing != "auto" or manner.beam or manner.variant != Variant():
        raise UsageError(
            "timings, beams and variants need the profile words; this model has subwords"
        )


def require_small(
    prompt: str,
    manner: Manner,
    *,
    chars: int = MOST_PROMPT,
    beam: int = MOST_BEAM,
    taker: str = "this gateway",
) -> None:
    """Raise UsageError for a prompt or a beam that is too large to be answered for strangers."""
    if len(prompt) > chars:
        raise UsageError(
            f"the prompt has {len(prompt):,} characters, and {taker} takes at most {chars:,}: make"
            " it shorter"
        )
    wanted = manner.beam
    if wanted and wanted.width * wanted.depth > beam:
        raise UsageError(
            f"the beam is {wanted.width} wide and {wanted.depth} deep, and {taker} takes at most"
            f" {beam} for width times depth: make it smaller"
        )


def timings(name: str) -> tuple[Timing, ...]:
    """Return the timings that a name stands for; UsageError for an unknown name."""
    if name == "auto":
        return AUTO
    try:
        return (Timing(name),)
    except ValueError:
        raise UsageError(f"no timing is named {name!r}; choose from {', '.join(TIMINGS)}") from None
