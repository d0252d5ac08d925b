"""Predicts the time that spaCy's tokenizer needs for punctuation, without running it.

The tokenizer cuts punctuation off both ends of a word, one mark at a time, and reads the rest of
the word again after each cut: a word of 1,000 brackets takes a quarter of a second. The functions
here simulate its cuts, and stop when they become too many. The results depend only on the text and
on the tokenizer's patterns, so all peers skip the same sentences.
"""

import re
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from typing import Protocol

MOST_READ = 1 << 13
"""The most characters that the tokenizer may read again in one sentence, which takes some 2 ms. An
ordinary sentence needs 100, and a row of 80 equals signs 3,240."""
MOST_CUTS = 16
"""The most cuts of a word in the search for sentences; a word with more is broken up by spaces."""

_PIECE = 8
_MARK = re.compile(r"[^\w\s]|_")
"""A mark: each cut removes one, except for the cut of a unit after a number (`10km`)."""
_MANY_CUTS = re.compile(rf"(?<!\S)\S{{{MOST_CUTS + 1},}}")


class Tokenizer(Protocol):
    """The patterns of spaCy's tokenizer that matter here."""

    prefix_search: Callable[[str], re.Match[str] | None]
    suffix_search: Callable[[str], re.Match[str] | None]


def is_costly(text: str, tokenizer: Tokenizer) -> bool:
    """Return whether a sentence's punctuation would take the tokenizer too long."""
    words = text.split()
    marks = len(_MARK.findall(text))
    if not words or (marks + 1) * max(map(len, words)) <= MOST_READ:
        return False
    read = accumulate(length for word in words for length in _rests(word, tokenizer))
    return any(total > MOST_READ for total in read)


def spaced(text: str, tokenizer: Tokenizer) -> str:
    """Return a text of the same length in which no word is costly to tokenise.

    The result serves only to find where sentences begin. In a word of many cuts, some marks are
    replaced by spaces. If its marks are all alike, as in a ruler, the sentences remain the same.
    """

    def replaced(match: re.Match[str]) -> str:
        word = match[0]
        if len(_MARK.findall(word)) < MOST_CUTS:
            return word
        cuts = sum(1 for _ in islice(_rests(word, tokenizer), MOST_CUTS + 1))
        return word if cuts <= MOST_CUTS else _in_pieces(word)

    return _MANY_CUTS.sub(replaced, text)


def _rests(word: str, tokenizer: Tokenizer) -> Iterator[int]:
    """Yield the length of the rest of a word after each of the tokenizer's cuts."""
    while word:
        prefix = tokenizer.prefix_search(word)
        start = prefix.end() if prefix else 0
        suffix = tokenizer.suffix_search(word[start:])
        end = start + suffix.start() if suffix else len(word)
        if end - start == len(word):
            return
        word = word[start:end]
        yield len(word)


def _in_pieces(word: str) -> str:
    """Return a word with a space in place of every ninth mark, but not at its end."""
    marks = [mark.start() for mark in _MARK.finditer(word, 0, len(word) - 1)]
    letters = list(word)
    for place in marks[_PIECE :: _PIECE + 1]:
        letters[place] = " "
    return "".join(letters)
