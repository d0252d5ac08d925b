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
        """Return the most neurons that this many tokens make: for each token its own neuron, one in
        any column and one as a delimiter, and one that counts all tokens."""
        return 3 * tokens + 1

    def most_pairs(self, spec: ModelSpec) -> int:
        """Return the most connections that a token adds, including those of rows of any column."""
        return spec.max_tokens - 1 + spec.feature_segments

    def column_names(self, noun: str, spec: ModelSpec) -> list[str]:
        """Return the first tokens that a noun may have: it begins with a space inside a sentence,
        and may be capitalised."""
        known = tokeniser(of_subwords(spec).tokeniser)
        inside = [f" {noun}", noun, f" {noun.title()}", noun.title()]
        forms = [noun] if noun[:1].isspace() else inside
        return list(dict.fromkeys(known.names[known.encode(form)[0]] for form in forms))

    def counter(self) -> Callable[[str], int]:
        """Return a function that counts a text's tokens; loading its tokeniser takes a while."""
        encode = tokeniser().encode
        return lambda text: len(encode(text))

    def reads_with(self, spec: ModelSpec) -> str:
        """Name what determines how a model reads, besides its pipeline."""
        return f"profile {spec.profile}, tokeniser {of_subwords(spec).tokeniser[:32]}"
