"""Facts about the profile `subwords`, for code that neither learns nor answers."""

from collections.abc import Callable

from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.spec import of_subwords
from giaann_p2p.model.subwords.tokeniser import tokeniser


class SubwordsTraits:
    """The traits of a model of subwords; see `traits.Traits`."""

    draws = True
    blocks = 16  # the column of rows that ignore columns holds half of all connections

    def most_neurons(self, tokens: int) -> int:
        """Return how many neurons so many tokens come to: each also one that stands for it in any
        column, and maybe one that stands for it as a delimiter; and the count of them all."""
        return 3 * tokens + 1

    def most_pairs(self, spec: ModelSpec) -> int:
        """Return how many connections a token adds, with those of any column."""
        return spec.max_tokens - 1 + spec.feature_segments

    def column_names(self, noun: str, spec: ModelSpec) -> list[str]:
        """Return the first tokens that a noun may have: it begins with a space inside a sentence,
        and may be capitalised."""
        known = tokeniser(of_subwords(spec).tokeniser)
        inside = [f" {noun}", noun, f" {noun.title()}", noun.title()]
        forms = [noun] if noun[:1].isspace() else inside
        return list(dict.fromkeys(known.names[known.encode(form)[0]] for form in forms))

    def counter(self) -> Callable[[str], int]:
        """Return what counts a text's tokens; loading its tokeniser takes a while."""
        encode = tokeniser().encode
        return lambda text: len(encode(text))

    def reads_with(self, spec: ModelSpec) -> str:
        """Return what a model reads with, besides its pipeline."""
        return f"profile {spec.profile}, tokeniser {of_subwords(spec).tokeniser[:32]}"
