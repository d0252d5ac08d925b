"""Splits a document into the texts of sequences: up to three sentences each, as a stream.

A text is cut out of the document as it stands, with the white space between its sentences. One with
far more words than a sequence may have is cut short at once, so that no later step meets it whole;
it keeps a few extra words, which show the parser that it must crop the text, and on which the tags
of the words before them depend.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache

from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.model.subwords.spec import of_subwords
from giaann_p2p.model.text import LONG_SENTENCE, Sentence, decoded, spaced_sentences

MAX_CHARS = 1 << 16
"""The length in characters beyond which a sentence is skipped: a bound on memory. Its beginning
could be learned; but a text this long without the end of a sentence is hardly English."""
LONGEST = 1 << 14
"""The same for a text cut to its beginning, so that a chunk fits into a message."""
MORE_WORDS = 16
"""How many words after a crop are read, too: a tag depends on four words on either side."""


def document_texts(pieces: Iterable[bytes], name: str, spec: ModelSpec) -> Iterator[Sentence]:
    """Yield the texts of a UTF-8 document; TextError, with its name, for another encoding."""
    whole = (piece.replace("\0", "") for piece in decoded(pieces, name))
    group, line, count = "", 0, 0
    for gap, sentence in spaced_sentences(whole, MAX_CHARS):
        group += gap + sentence.text if count else sentence.text
        line, count = line if count else sentence.line, count + 1
        if count == of_subwords(spec).sentences:
            yield from _kept(group, line, spec)
            group, count = "", 0
    yield from _kept(group, line, spec)


def beginning(text: str, spec: ModelSpec) -> str:
    """Return the beginning of a text, with every word that can matter.

    Words are separated by spaces here; the English pipeline makes one word or more of each.
    """
    found = _beginning(of_subwords(spec).max_words + MORE_WORDS).match(text)
    return found[0] if found else text


def _kept(group: str, line: int, spec: ModelSpec) -> Iterator[Sentence]:
    text = beginning(group, spec)
    if LONG_SENTENCE in group or len(text) > LONGEST:
        yield Sentence(LONG_SENTENCE, line)
    elif text and not text.isspace():
        yield Sentence(text, line)


@cache
def _beginning(words: int) -> re.Pattern[str]:
    """Return a regex for this many words and the space before the next word, which must exist."""
    return re.compile(rf"\s*(?:\S+\s+){{{words}}}(?=\S)")
