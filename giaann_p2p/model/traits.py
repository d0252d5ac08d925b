"""The differences between profiles that matter to code that neither learns nor answers.

Storage peers, the gateway and commands ask here, so they know no profile by its name. A profile
itself is not needed for it, which has a parser and takes seconds to load.
"""

from collections.abc import Callable
from typing import Protocol

from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.traits import SubwordsTraits
from giaann_p2p.model.words_traits import WordsTraits


class Traits(Protocol):
    """The particulars of a profile."""

    @property
    def draws(self) -> bool:
        """Whether an answer can be drawn by probability, and not only be the best one."""
        ...

    @property
    def blocks(self) -> int:
        """The usual number of blocks per column."""
        ...

    def most_neurons(self, tokens: int) -> int:
        """Return how many neurons so many tokens come to at most."""
        ...

    def most_pairs(self, spec: ModelSpec) -> int:
        """Return how many connections a token adds at most."""
        ...

    def column_names(self, noun: str, spec: ModelSpec) -> list[str]:
        """Return the names that a noun's column may have, in the order in which to look for it."""
        ...

    def counter(self) -> Callable[[str], int]:
        """Return what counts a text's tokens."""
        ...

    def reads_with(self, spec: ModelSpec) -> str:
        """Return what a model reads with, besides its pipeline."""
        ...


def traits_of(profile: str) -> Traits:
    """Return the traits of a profile, by the name that specs have."""
    return SubwordsTraits() if profile == "subwords" else WordsTraits()
