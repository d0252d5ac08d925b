"""Gives each token of a text a part of speech: that of the word with which it shares most bytes."""

import re
import string
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from giaann_p2p.model.subwords.tags import PartOfSpeech, TaggedWord

_PUNCTUATION = frozenset(string.punctuation)
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_SYMBOL = re.compile(r"[$%&*+=<>@^~|]")


class Token(NamedTuple):
    """A token of a text."""

    number: int
    text: str | None
    """None if the token is part of a character."""
    part: PartOfSpeech

    @property
    def is_noun(self) -> bool:
        """Whether the token is a noun, or part of one."""
        return self.part.pos in ("NOUN", "PROPN")


def tokens_of(
    text: str,
    words: Sequence[TaggedWord],
    numbers: Sequence[int],
    texts: Sequence[str | None],
    lengths: Sequence[int],
) -> list[Token]:
    """Return the tokens of a text, given their numbers, their texts and their lengths in bytes."""
    spans = list(_word_spans(text, words))
    found, start, first = list[Token](), 0, 0
    for number, own, length in zip(numbers, texts, lengths, strict=True):
        end = start + length
        while first < len(spans) and spans[first][1] <= start:
            first += 1
        part = words[_nearest(spans, first, start, end)].part
        found.append(Token(number, own, part if own is None else _corrected(own, part)))
        start = end
    return found


def _word_spans(text: str, words: Sequence[TaggedWord]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last offset of each word, in bytes.

    A word is where its text is first found from the end of the word before. For a word of white
    space this can be before its own offset.
    """
    at = place = 0
    for word in words:
        found = text.index(word.text, at)
        start = place + len(text[at:found].encode())
        at, place = found + len(word.text), start + len(word.text.encode())
        yield start, place


def _nearest(spans: Sequence[tuple[int, int]], first: int, start: int, end: int) -> int:
    """Return the index of the word that shares most bytes with a token.

    Ties go to the first word. If none shares a byte, it is the next word, or the last. Words before
    `first` end before the token.
    """
    best, most = min(first, len(spans) - 1), 0
    for at in range(first, len(spans)):
        left, right = spans[at]
        if left >= end:
            break
        shared = min(right, end) - max(left, start)
        if shared > most:
            best, most = at, shared
    return best


def _corrected(text: str, part: PartOfSpeech) -> PartOfSpeech:
    """Return the part of speech that a token's own text implies, else that of its word."""
    if text.isspace():
        return part._replace(pos="SPACE")
    if _PUNCTUATION.issuperset(text):
        return PartOfSpeech("PUNCT", ".")
    if _NUMBER.fullmatch(text):
        return part._replace(pos="NUM")
    if _SYMBOL.search(text):
        return part._replace(pos="SYM")
    return part
