"""Texts to learn and prompts to ask, the same in each run."""

import re
from functools import cache
from pathlib import Path

import numpy as np

from giaann_p2p.model.parse import Parser, max_chars
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.text import Sentence, text_sentences
from tests.benchmarks.zipf import Zipf

WIKI = Path(__file__).parents[2] / "data" / "wiki.txt"
WORDS = 12
"""Of a sentence that make a prompt: as many as the model is seeded with."""
_SPEC = ModelSpec()
_SHORTEST = 18
_WORD = re.compile("[A-Za-z]+")
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def again(number: int) -> str:
    """Return the bundled text, as a job of its own for each number: empty lines mean nothing."""
    return WIKI.read_text() + "\n" * number


@cache
def prompts() -> list[str]:
    """Return the first words of the bundled text's longer sentences."""
    found = [one.text.split() for one in _sentences()]
    return [" ".join(words[:WORDS]) for words in found if len(words) >= _SHORTEST]


def made_up(sentences: int, seed: int) -> str:
    """Return sentences of the bundled text with other nouns, one a line, without an end.

    They are drawn by chance; their nouns are words that nobody uses, each as frequent as nouns
    are. So a long text has as many different concepts as a written one, and is parsed as well.
    """
    random, words, known = np.random.default_rng(seed), Zipf().nouns, _nouns()

    def other(found: re.Match[str]) -> str:
        word = found[0].lower()
        if word in known:
            return noun(int(words.draw(random, 1)[0]))
        if word.removesuffix("s") in known:
            return noun(int(words.draw(random, 1)[0])) + "s"
        return found[0]

    texts = [one.text for one in _sentences()]
    chosen = random.integers(len(texts), size=sentences).tolist()
    return "".join(f"{_WORD.sub(other, texts[at])}\n" for at in chosen)


def noun(number: int) -> str:
    """Return syllables, others for each number, with an ending of nouns."""
    size = len(_CONSONANTS) * len(_VOWELS)
    found = "ment"
    while True:
        number, rest = divmod(number, size)
        found = _CONSONANTS[rest // len(_VOWELS)] + _VOWELS[rest % len(_VOWELS)] + found
        if not number:
            return found


def _sentences() -> list[Sentence]:
    return list(text_sentences(WIKI.read_text(), max_chars(_SPEC)))


@cache
def _nouns() -> frozenset[str]:
    """Return the bundled text's nouns of one word."""
    (parsed,) = Parser(_SPEC).parse([_sentences()])
    sequences = parsed.sequences
    names = {sequences.names[concept] for concept in sequences.concept.tolist()}
    return frozenset(name for name in names if name.isalpha())
