"""The differences between profiles that matter to code that neither learns nor answers.

Storage peers, the gateway and commands ask here, so they need not compare names of profiles, nor
load a profile itself, which has a parser and takes seconds to load.
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
        """Whether answers can be drawn by probability; else only the best one is given."""
        ...

    @property
    def blocks(self) -> int:
        """The usual number of blocks per column."""
        ...

    def most_neurons(self, tokens: int) -> int:
        """Return the most neurons that this many tokens make."""
        ...

    def most_pairs(self, spec: ModelSpec) -> int:
        """Return the most connections that a token adds."""
        ...

    def column_names(self, noun: str, spec: ModelSpec) -> list[str]:
        """Return the names that a noun's column may have, in the order in which to look for it."""
        ...

    def counter(self) -> Callable[[str], int]:
        """Return a function that counts a text's tokens."""
        ...

    def reads_with(self, spec: ModelSpec) -> str:
        """Name what determines how a model reads, besides its pipeline."""
        ...


def traits_of(profile: str) -> Traits:
    """Return the traits of a profile, given its name in specs."""
    return SubwordsTraits() if profile == "subwords" else WordsTraits()
