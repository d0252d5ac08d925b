"""Texts to learn and prompts to ask, the same in each run."""

from functools import cache
from pathlib import Path

import numpy as np

from giaann_p2p.model.text import text_sentences
from tests.benchmarks.zipf import Zipf

WIKI = Path(__file__).parents[2] / "data" / "wiki.txt"
WORDS = 12
"""Of a sentence that make a prompt: as many as the model is seeded with."""
_SHORTEST = 18
_LONGEST = 20_000
_LEAST, _MORE = 13, 12
"""Words that a made-up sentence has at least, and more on average."""
_NOUNS = 0.28
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


def again(number: int) -> str:
    """Return the bundled text, as a job of its own for each number: empty lines mean nothing."""
    return WIKI.read_text() + "\n" * number


@cache
def prompts() -> list[str]:
    """Return the first words of the bundled text's longer sentences."""
    sentences = [one.text.split() for one in text_sentences(WIKI.read_text(), _LONGEST)]
    return [" ".join(words[:WORDS]) for words in sentences if len(words) >= _SHORTEST]


def made_up(sentences: int, seed: int) -> str:
    """Return sentences of words that nobody uses, each as frequent as words are; one a line.

    Their endings tell a tagger what they are.
    """
    random, words = np.random.default_rng(seed), Zipf()
    lengths = _LEAST + random.exponential(_MORE, sentences).astype(np.int64)
    is_noun = random.random(int(lengths.sum())) < _NOUNS
    noun = words.nouns.draw(random, len(is_noun))
    other = words.others.draw(random, len(is_noun))
    text = [
        f"{_stem(n)}ation" if of_noun else f"{_stem(o)}ly"
        for of_noun, n, o in zip(is_noun.tolist(), noun.tolist(), other.tolist(), strict=True)
    ]
    ends = np.cumsum(lengths).tolist()
    parts = (text[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True))
    return "".join(f"The {' '.join(part)} nation.\n" for part in parts)


def _stem(number: int) -> str:
    """Return syllables, others for each number."""
    size = len(_CONSONANTS) * len(_VOWELS)
    found = ""
    while True:
        number, rest = divmod(number, size)
        found += _CONSONANTS[rest // len(_VOWELS)] + _VOWELS[rest % len(_VOWELS)]
        if not number:
            return found
