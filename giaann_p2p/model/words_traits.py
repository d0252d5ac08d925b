"""Facts about the profile `words`, for code that neither learns nor answers."""

import re
from collections.abc import Callable

from giaann_p2p.model.spec import ModelSpec

_TOKEN = re.compile(r"\w+|[^\w\s]")


class WordsTraits:
    """The traits of a model of words; see `traits.Traits`."""

    draws = False
    blocks = 1

    def most_neurons(self, tokens: int) -> int:
        """Return how many neurons so many tokens come to: one each."""
        return tokens

    def most_pairs(self, spec: ModelSpec) -> int:
        """Return how many connections a token adds: with each other token of its sentence at most
        two, one in a column segment and one in a feature segment, which two tokens share."""
        return spec.max_tokens - 1

    def column_names(self, noun: str, _spec: ModelSpec) -> list[str]:
        """Return the name of a noun's column."""
        return ["_".join(noun.lower().split())]

    def counter(self) -> Callable[[str], int]:
        """Return what counts a text's tokens, roughly: only compute peers load the parser, so words
        and punctuation marks are counted."""
        return lambda text: sum(1 for _ in _TOKEN.finditer(text))

    def reads_with(self, spec: ModelSpec) -> str:
        """Return what a model reads with, besides its pipeline."""
        return f"lexicon {spec.lexicon}"
