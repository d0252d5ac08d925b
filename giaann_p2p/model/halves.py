"""Cuts a learned text in two: a prompt of its first words, and the rest that is to be recalled."""

import re
from typing import NamedTuple

from giaann_p2p.model.render import Renderer
from giaann_p2p.model.sequence import Sequences

_WORD = re.compile(r"\S+")


class Halves(NamedTuple):
    """A text in two parts."""

    prompt: str
    rest: str
    """The answer that recalls the text; empty if the prompt is all of it."""
    most: int
    """The most tokens that the answer may have."""


def first_words(text: str, count: int) -> str:
    """Return the first `count` words of a text, as they are spelled there."""
    ends = [match.end() for match in _WORD.finditer(text)]
    return text[: ends[count - 1]] if len(ends) > count else text


def rest_of(prompt: str, sequence: Sequences) -> str:
    """Return the rest of a sentence after a prompt that it begins with, rendered as text."""
    ends = sequence.end.tolist()
    first = next((i for i, end in enumerate(ends) if end > len(prompt)), len(ends))
    if first == len(ends):
        return ""
    begun = prompt[ends[first - 1] if first else 0 :].strip()
    words = sequence.words[first:]
    renderer, lacking = Renderer(prompt), ""
    if begun:  # the prompt ends within a merged word: render the rest of that word first
        lacking = renderer.complete(words.pop(0)[len(begun) :])
    return lacking + "".join(map(renderer.append, words))
