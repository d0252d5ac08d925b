"""The evidence for a chosen word in the profile `words`: a timing, or counts alone."""

from enum import StrEnum


class Tier(StrEnum):
    """The evidence for a choice, from a text learned word for word to a mere guess.

    The first four are the timings, by which activation chose. The others are counts, which choose
    the first word of an answer where no activation does (see `back_off`).
    """

    EXACT = "exact"
    SEQ = "seq"
    NONE = "none"
    BIASED = "biased"
    OWN = "own rows"
    """Words that followed a word of the prompt in its own column."""
    ANY = "any column"
    """Words that followed a word of the prompt in the most frequent columns."""
    FREQUENT = "no evidence"
    """Nothing but how frequent nouns are."""
