"""Assigns the tagged tokens of a sentence to columns: to which noun each token belongs.

The rules, in the order in which they apply:

1. Neighbouring nouns merge into one token, and so do nouns joined by a dash.
2. Two nouns with no delimiter between them are one phrase: its last noun represents it, the others
   become plain words.
3. The remaining nouns are the concepts. The boundary between two concepts is right after the
   rightmost deterministic delimiter or, without one, after the rightmost probabilistic one.
4. A token's column is the concept whose boundaries enclose it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from giaann_p2p.model.lexicon import Delimiter, delimiter

_DASHES = frozenset("-–")


class Word(NamedTuple):
    """A token of a sentence, or several merged tokens, in lower case."""

    text: str
    lemma: str
    noun: bool
    start: int
    end: int
    """The end of the token. `start` and `end` are offsets in the sentence, in characters."""


def merge_nouns(tokens: Sequence[Word]) -> list[Word]:
    """Apply rule 1: merge neighbouring nouns, and nouns joined by a dash, into one token."""
    merged: list[Word] = []
    last = len(tokens) - 1
    dash = False  # whether a dropped dash is between the last merged noun and this token
    for i, token in enumerate(tokens):
        after_noun = bool(merged) and merged[-1].noun
        if after_noun and token.noun:  # also for a dash that is tagged as a noun itself
            left, joint = merged.pop(), "-" if dash else "_"
            text, lemma = left.text + joint + token.text, left.lemma + joint + token.lemma
            merged.append(Word(text, lemma, True, left.start, token.end))
            dash = False
        elif after_noun and token.text in _DASHES and i < last and tokens[i + 1].noun:
            dash = True
        else:
            merged.append(token)
    return merged


def concepts(words: Sequence[Word]) -> list[int]:
    """Apply rule 2: return the positions of the nouns that represent a column."""
    nouns = [i for i, word in enumerate(words) if word.noun]
    return [
        left for left, right in pairwise(nouns) if _boundary(words, left, right) is not None
    ] + nouns[-1:]


def columns(words: Sequence[Word], concepts: Sequence[int]) -> list[int]:
    """Apply rules 3 and 4: return for each word the index of the concept that it belongs to."""
    starts = [0]
    for left, right in pairwise(concepts):
        boundary = _boundary(words, left, right)
        starts.append(right if boundary is None else boundary)  # after rule 2, each pair has one
    ends = [*starts[1:], len(words)]
    spans = enumerate(zip(starts, ends, strict=True))
    return [column for column, (start, end) in spans for _ in range(start, end)]


def _boundary(words: Sequence[Word], left: int, right: int) -> int | None:
    """Return the first position of the column of `right`; None if nothing delimits the two."""
    best, at = Delimiter.NONE, None
    for i in range(right - 1, left, -1):
        kind = delimiter(words[i].text)
        if kind > best:
            best, at = kind, i + 1
    return at
