"""Counts the tokens of a prompt, for `usage`.

A model of subwords has a tokeniser, which counts exactly. A model of words reads with a parser that
only compute peers load, so words and punctuation marks are counted here, which comes close.
"""

import re
from collections.abc import Callable

_WORD = re.compile(r"\w+|[^\w\s]")
Counter = Callable[[str], int]


def counter_of(profile: str) -> Counter:
    """Return the function that counts a prompt's tokens; for subwords, it takes a while to load."""
    if profile == "words":
        return _words
    from giaann_p2p.model.subwords.tokeniser import tokeniser

    encode = tokeniser().encode
    return lambda text: len(encode(text))


def _words(text: str) -> int:
    return sum(1 for _ in _WORD.finditer(text))
