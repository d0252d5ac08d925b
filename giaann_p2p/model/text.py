"""Splits bytes into sentences, as a stream: memory is bounded, whatever the file contains.

The sentences are those that spaCy's sentencizer finds in the whole document, with newlines read as
spaces. It runs on blocks of fixed size; the last sentence of a block, which may be unfinished, is
carried into the next block. Because no token spans white space and the sentencizer looks back only
to the start of a sentence, a text can be split again from any sentence that follows white space,
with the same result.

Excessive input is truncated early: a word of more than 1,000 characters and a sentence of more than
`max_chars` are each replaced by a mark (a Unicode noncharacter), and the sentence that contains the
mark is later skipped and counted.
"""

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from spacy.pipeline import Sentencizer
from spacy.strings import get_string_id
from spacy.tokens import Doc

from giaann_p2p.model import english
from giaann_p2p.model.affixes import Tokenizer, spaced
from giaann_p2p.model.encoding import LONGEST_MARK, refuse_marked
from giaann_p2p.model.word_memory import tokenized

BLOCK = 1 << 16
MAX_WORD = 1000
_LAST_WORDS = 4 * MAX_WORD
_MOST_YIELDED = 1 << 16
LONG_WORD = "\ufdd0"
LONG_SENTENCE = "\ufdd1"

_END_MARKS = frozenset(map(get_string_id, Sentencizer.default_punct_chars))
"""The marks that may end a sentence, by spaCy's hashes."""
_LONG_WORD = re.compile(rf"\S{{{MAX_WORD + 1},}}")


class Sentence(NamedTuple):
    """A sentence and the line of the document on which it starts, from 1."""

    text: str
    line: int


def document_sentences(pieces: Iterable[bytes], name: str, max_chars: int) -> Iterator[Sentence]:
    """Yield the sentences of a UTF-8 document; TextError, with its name, for another encoding."""
    return sentences(decoded(pieces, name), max_chars)


def text_sentences(text: str, max_chars: int) -> Iterator[Sentence]:
    """Yield the sentences of a text that is already in memory."""
    return document_sentences([text.encode("utf-8", "surrogatepass")], "text", max_chars)


def decoded(pieces: Iterable[bytes], name: str) -> Iterator[str]:
    """Decode UTF-8; invalid bytes become U+FFFD; a sentence with many of these is skipped later."""
    utf8 = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
    start = b""
    for piece in pieces:
        if len(start) < LONGEST_MARK:
            start += piece[:LONGEST_MARK]
            refuse_marked(start, name)
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def sentences(pieces: Iterable[str], max_chars: int) -> Iterator[Sentence]:
    """Split a document that arrives in pieces; their sizes do not affect the result."""
    return (sentence for _, sentence in spaced_sentences(pieces, max_chars) if sentence.text)


def spaced_sentences(pieces: Iterable[str], max_chars: int) -> Iterator[tuple[str, Sentence]]:
    """Yield each sentence with the white space between it and the one before.

    White space at the end of a document may be a sentence to spaCy; its text is empty here.
    """
    open_end, blocks = _OpenEnd(), _blocks(pieces)
    block = next(blocks)
    for following in blocks:
        text = open_end.text + block
        cut = _end_of_last_whole_word(text)
        whole = _LONG_WORD.sub(LONG_WORD, text[:cut])
        spans = _split(whole)
        for start, sentence in spans[:-1]:
            if sentence:
                yield from open_end.kept(whole, start, sentence, max_chars)
        open_end = open_end.moved(whole, [start for start, _ in spans], max_chars)
        open_end.text += text[cut : cut + MAX_WORD + 2]
        block = following
    whole = _LONG_WORD.sub(LONG_WORD, open_end.text + block)
    for start, sentence in _split(whole):
        yield from open_end.kept(whole, start, sentence, max_chars)


@dataclass
class _OpenEnd:
    """The end of the text read so far: a sentence that may continue in the next block."""

    text: str = ""
    line: int = 1
    """The line on which the text starts."""
    yielded: int = 0
    """The number of characters at the start of the text that belong to sentences already yielded:
    the text must start after white space, and the open sentence may not."""
    dropped: int = 0
    """The number of lines that were cut out of the text."""
    gap: str = ""
    """The white space before the text."""

    def kept(
        self, whole: str, start: int, sentence: str, max_chars: int
    ) -> Iterator[tuple[str, Sentence]]:
        """Yield a sentence of the text and the space before it, unless it was yielded before."""
        if start >= self.yielded:
            too_long = len(sentence) > max_chars or LONG_SENTENCE in sentence
            text = LONG_SENTENCE if too_long else sentence
            yield self._gap_before(whole, start), Sentence(text, self._line_at(whole, start))

    def moved(self, whole: str, starts: list[int], max_chars: int) -> "_OpenEnd":
        """Return the open end of `whole`, which starts with the text of this one."""
        last = starts[-1] if starts else 0
        behind_space = (i for i in reversed(starts) if i == 0 or whole[i - 1].isspace())
        anchor = next(behind_space, last)
        if len(whole) - last > max_chars:  # too long already: its beginning no longer matters
            anchor = last
        if anchor < last - _MOST_YIELDED:  # crafted to be slow; all peers cut it alike
            anchor = last
        line, text = self._line_at(whole, anchor), whole[anchor:]
        gap = self._gap_before(whole, anchor)
        dropped = 0 if anchor else self.dropped
        if anchor < last:
            return _OpenEnd(text, line, last - anchor, dropped, gap)
        leading = text[: len(text) - len(text.lstrip())]
        before, behind = _abridged(text[len(leading) :], leading, max_chars)
        line += leading.count("\n") - before.count("\n")
        dropped += text.count("\n", len(leading)) - behind.count("\n")
        return _OpenEnd(before + behind, line, 0, dropped, gap)

    def _gap_before(self, whole: str, place: int) -> str:
        at = place
        while at and whole[at - 1].isspace():
            at -= 1
        gap = whole[at:place].replace("\n", " ")
        return gap if at else self.gap + gap

    def _line_at(self, whole: str, place: int) -> int:
        return self.line + whole.count("\n", 0, place) + (self.dropped if place else 0)


def _blocks(pieces: Iterable[str]) -> Iterator[str]:
    """Cut the document into blocks of fixed size, so that the sizes of pieces have no effect."""
    pending = ""
    for piece in pieces:
        pending += piece
        at = 0
        while len(pending) - at > BLOCK:
            yield pending[at : at + BLOCK]
            at += BLOCK
        pending = pending[at:]
    yield pending


def _split(text: str) -> list[tuple[int, str]]:
    """Split into sentences, each with its offset, without the white space before it.

    A text whose words spaCy always confuses (see `word_memory`) is one sentence.
    """
    text, words = text.replace("\n", " "), english.tokenizer()
    with words.open() as nlp:
        easy = spaced(text, cast(Tokenizer, nlp.tokenizer))
        if (doc := tokenized(easy, nlp)) is not None:
            return _cut(text, easy, _spans(doc))
    with words.alone() as nlp:
        doc = tokenized(easy, nlp)
        return _cut(text, easy, [(0, len(text))] if doc is None else _spans(doc))


def _cut(text: str, easy: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, str]]:
    found = []
    for start, last in spans:
        end = last + (easy[last : last + 1] != text[last : last + 1])  # a mark became a space
        sentence = text[start:end].lstrip()
        found.append((end - len(sentence), sentence))
    return found


def _spans(doc: Doc) -> Iterator[tuple[int, int]]:
    """Return where sentences start and end, in characters, as spaCy's sentencizer finds them.

    After an end mark, the next sentence begins with the first token that is not punctuation.
    """
    if not len(doc):
        return iter(())
    orth, place, length, punctuation = doc.to_array(["ORTH", "IDX", "LENGTH", "IS_PUNCT"]).T
    is_end = np.array([number in _END_MARKS for number in orth.tolist()], np.bool_)
    telling = np.flatnonzero(is_end | (punctuation == 0))
    after_end = is_end[telling[:-1]] & ~is_end[telling[1:]]
    first = np.concatenate([[0], telling[1:][after_end]])
    last = np.concatenate([first[1:], [len(doc)]]) - 1
    return zip(place[first].tolist(), (place[last] + length[last]).tolist(), strict=True)


def _end_of_last_whole_word(text: str) -> int:
    """Return the offset of the last white space: what follows may continue in the next block."""
    if text[-1:].isspace():
        return len(text) - 1
    words = text.rsplit(maxsplit=1)
    return max(len(text) - len(words[-1]) - 1, 0) if words else 0


def _abridged(text: str, leading: str, max_chars: int) -> tuple[str, str]:
    """Shorten an open sentence, and the white space before it, to what can still matter.

    Of a sentence that is too long already, only the last words matter: they show if it has ended.
    """
    body = text.rstrip()
    trailing = text[len(body) :]
    if len(body) > max_chars:
        body = " ".join([LONG_SENTENCE, *_last_words(body)])
    return leading[-max_chars:], body + trailing[:max_chars]


def _last_words(body: str) -> list[str]:
    """Return the last word with a letter or digit in it, and the punctuation after it."""
    words: list[str] = []
    for word in reversed(body[-_LAST_WORDS:].split()):
        words.insert(0, word)
        if any(map(str.isalnum, word)):
            break
    return words
