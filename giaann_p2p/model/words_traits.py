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
        """Return the most neurons that this many tokens make: one each."""
        return tokens

    def most_pairs(self, spec: ModelSpec) -> int:
        """Return the most connections that a token adds: up to two with each other token of its
        sentence, in a column segment and a feature segment, which the two tokens share."""
        return spec.max_tokens - 1

    def column_names(self, noun: str, _spec: ModelSpec) -> list[str]:
        """Return the name of a noun's column.

        What is no UTF-8 in a command's argument becomes U+FFFD, as it does in a text.
        """
        known = noun.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return ["_".join(known.lower().split())]

    def counter(self) -> Callable[[str], int]:
        """Return a function that counts a text's words and punctuation marks, roughly its tokens:
        only compute peers load the parser."""
        return lambda text: sum(1 for _ in _TOKEN.finditer(text))

    def reads_with(self, spec: ModelSpec) -> str:
        """Name what determines how a model reads, besides its pipeline."""
        return f"lexicon {spec.lexicon}"
