"""Assigns the tokens of a text to columns: to which noun each token belongs.

The rules, in the order in which they apply:

1. A noun token that follows no other noun token is a concept; the noun's other tokens are features.
2. A token is a deterministic delimiter by its part of speech or its text. Some others may be
   delimiters: such a candidate is a probabilistic one if the nearest nouns on its left and right
   have no deterministic delimiter between them, and no earlier candidate. A concept is never one.
3. The boundary between two neighbouring concepts is right after the rightmost deterministic
   delimiter between them; without one, after the rightmost probabilistic one; else right before the
   second concept.
4. A token's column is the concept whose boundaries enclose it.
"""

from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise

from giaann_p2p.model.subwords.tokens import Token

_CERTAIN_POS, _CERTAIN_TAG = frozenset(["VERB", "ADP"]), "POS"
_CERTAIN = frozenset([";", ":", ".", "?", "!"])
_LIKELY_POS = frozenset(["CCONJ", "SCONJ"])
_LIKELY = frozenset(["is", "are", ",", "("])


class Delimiter(IntEnum):
    """How strongly a token separates the column on its left from the one on its right."""

    NONE = 0
    CANDIDATE = 1
    PROBABILISTIC = 2
    DETERMINISTIC = 3


def concepts(tokens: Sequence[Token]) -> list[int]:
    """Apply rule 1: return the positions of the concepts."""
    nouns = [token.is_noun for token in tokens]
    return [at for at, noun in enumerate(nouns) if noun and not (at and nouns[at - 1])]


def delimiters(tokens: Sequence[Token], concepts: Sequence[int]) -> list[Delimiter]:
    """Apply rule 2: return the class of each token."""
    found = [_alone(token) for token in tokens]
    for at in concepts:
        found[at] = Delimiter.NONE
    nouns = [at for at, token in enumerate(tokens) if token.is_noun]
    for left, right in pairwise(nouns):
        between = range(left + 1, right)
        if any(found[at] is Delimiter.DETERMINISTIC for at in between):
            continue
        first = next((at for at in between if found[at] is Delimiter.CANDIDATE), None)
        if first is not None:
            found[first] = Delimiter.PROBABILISTIC
    return found


def columns(concepts: Sequence[int], delimiters: Sequence[Delimiter]) -> list[int]:
    """Apply rules 3 and 4: return for each token the index of its column's concept."""
    starts = [0, *(_boundary(delimiters, left, right) for left, right in pairwise(concepts))]
    ends = [*starts[1:], len(delimiters)]
    spans = enumerate(zip(starts, ends, strict=True))
    return [column for column, (start, end) in spans for _ in range(start, end)]


def named_until(concepts: Sequence[int], delimiters: Sequence[Delimiter]) -> int:
    """Return the position from which on a later noun may still claim the tokens.

    It is right after the first delimiter, or candidate for one, that follows the last concept.
    """
    later = range(concepts[-1] + 1, len(delimiters))
    return next((at + 1 for at in later if delimiters[at]), len(delimiters))


def _alone(token: Token) -> Delimiter:
    """Return the class that a token has without its neighbours."""
    pos, tag = token.part
    if pos in _CERTAIN_POS or tag == _CERTAIN_TAG or token.text in _CERTAIN:
        return Delimiter.DETERMINISTIC
    if pos in _LIKELY_POS or token.text in _LIKELY:
        return Delimiter.CANDIDATE
    return Delimiter.NONE


def _boundary(delimiters: Sequence[Delimiter], left: int, right: int) -> int:
    """Return the first position of the column of the concept at `right`."""
    for kind in (Delimiter.DETERMINISTIC, Delimiter.PROBABILISTIC):
        for at in range(right - 1, left, -1):
            if delimiters[at] is kind:
                return at + 1
    return right
