"""Bytes to sentences, as a stream: memory stays bounded whatever the file holds.

Sentences are those that spaCy's sentencizer finds in the whole document with its newlines read as
spaces. It is run on blocks of fixed size; the last sentence of a block, perhaps unfinished, is
carried into the next. Since no token spans white space and the sentencizer looks back only to the
start of a sentence, a sentence that starts behind white space can be split again on its own, and
that gives the same sentences.

What no sentence can be is cut short before it costs anything: a word of more than 1,000 characters
and a sentence of more than `max_chars` are each replaced by a mark (a Unicode noncharacter), and
the sentence that holds the mark is later skipped and counted.
"""

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from giaann_p2p.errors import TextError
from giaann_p2p.model import english

BLOCK = 1 << 16
MAX_WORD = 1000
_LAST_WORDS = 4 * MAX_WORD
_MOST_TOLD = 1 << 16
LONG_WORD = "\ufdd0"
LONG_SENTENCE = "\ufdd1"

_LONG_WORD = re.compile(rf"\S{{{MAX_WORD + 1},}}")
_FOREIGN_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_LONGEST_MARK = max(map(len, _FOREIGN_ENCODINGS))


class Sentence(NamedTuple):
    """A sentence and the line of the document on which it starts, from 1."""

    text: str
    line: int


def document_sentences(pieces: Iterable[bytes], name: str, max_chars: int) -> Iterator[Sentence]:
    """Read the sentences of a UTF-8 document; TextError, with its name, for another encoding."""
    return sentences(decoded(pieces, name), max_chars)


def text_sentences(text: str, max_chars: int) -> Iterator[Sentence]:
    """Split a text that is already in memory."""
    return document_sentences([text.encode("utf-8", "surrogatepass")], "text", max_chars)


def decoded(pieces: Iterable[bytes], name: str) -> Iterator[str]:
    """Decode UTF-8; what is not UTF-8 becomes U+FFFD, and its sentences are skipped."""
    utf8 = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
    start = b""
    for piece in pieces:
        if len(start) < _LONGEST_MARK:
            start += piece[:_LONGEST_MARK]
            _refuse_foreign(start, name)
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _refuse_foreign(start: bytes, name: str) -> None:
    for mark, encoding in _FOREIGN_ENCODINGS.items():
        if start.startswith(mark):
            raise TextError(
                f"{name}:1: the text is {encoding}, not UTF-8; "
                f"convert it first: iconv -f {encoding} -t UTF-8"
            )


def sentences(pieces: Iterable[str], max_chars: int) -> Iterator[Sentence]:
    """Split a document that comes in pieces, whose sizes make no difference."""
    open_end = _OpenEnd()
    for block in _blocks(pieces):
        text = open_end.text + block
        cut = _end_of_last_whole_word(text)
        whole = _LONG_WORD.sub(LONG_WORD, text[:cut])
        spans = _split(whole)
        for start, sentence in spans[:-1]:
            yield from open_end.kept(whole, start, sentence, max_chars)
        open_end = open_end.moved(whole, [start for start, _ in spans], max_chars)
        open_end.text += text[cut : cut + MAX_WORD + 2]
    whole = _LONG_WORD.sub(LONG_WORD, open_end.text)
    for start, sentence in _split(whole):
        yield from open_end.kept(whole, start, sentence, max_chars)


@dataclass
class _OpenEnd:
    """The end of what was read so far: a sentence that may go on."""

    text: str = ""
    line: int = 1
    """The line on which the text starts."""
    told: int = 0
    """Characters at its start that belong to sentences given already: it starts behind white space,
    and the open sentence perhaps does not."""
    dropped: int = 0
    """Lines that were cut out of it."""

    def kept(self, whole: str, start: int, sentence: str, max_chars: int) -> Iterator[Sentence]:
        """Give a sentence of the text and what follows it, unless it is nothing or old."""
        if sentence and start >= self.told:
            too_long = len(sentence) > max_chars or LONG_SENTENCE in sentence
            yield Sentence(LONG_SENTENCE if too_long else sentence, self._line_at(whole, start))

    def moved(self, whole: str, starts: list[int], max_chars: int) -> "_OpenEnd":
        """Return the open end of the whole, which starts with this one's text."""
        last = starts[-1] if starts else 0
        behind_space = (i for i in reversed(starts) if i == 0 or whole[i - 1].isspace())
        anchor = next(behind_space, last)
        if len(whole) - last > max_chars:  # too long already: how it began no longer matters
            anchor = last
        if (
            anchor < last - _MOST_TOLD
        ):  # text made to be slow; where it is cut is the same every time
            anchor = last
        line, text = self._line_at(whole, anchor), whole[anchor:]
        dropped = 0 if anchor else self.dropped
        if anchor < last:
            return _OpenEnd(text, line, last - anchor, dropped)
        leading = text[: len(text) - len(text.lstrip())]
        before, behind = _abridged(text[len(leading) :], leading, max_chars)
        line += leading.count("\n") - before.count("\n")
        dropped += text.count("\n", len(leading)) - behind.count("\n")
        return _OpenEnd(before + behind, line, 0, dropped)

    def _line_at(self, whole: str, place: int) -> int:
        return self.line + whole.count("\n", 0, place) + (self.dropped if place else 0)


def _blocks(pieces: Iterable[str]) -> Iterator[str]:
    """Cut the document anew, so that nothing depends on how it came."""
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
    """Split into sentences, each with its place, without the white space before it."""
    found = []
    with english.splitting() as nlp:
        for span in nlp(text.replace("\n", " ")).sents:
            sentence = span.text.lstrip()
            found.append((span.start_char + len(span.text) - len(sentence), sentence))
    return found


def _end_of_last_whole_word(text: str) -> int:
    """Return the place of the last white space: what follows may go on in the next block."""
    return next((i for i in range(len(text) - 1, -1, -1) if text[i].isspace()), 0)


def _abridged(text: str, leading: str, max_chars: int) -> tuple[str, str]:
    """Keep of an open sentence, and of the white space before it, what can still matter.

    Of one that is too long already, only its last words matter: whether it has ended.
    """
    body = text.rstrip()
    trailing = text[len(body) :]
    if len(body) > max_chars:
        body = " ".join([LONG_SENTENCE, *_last_words(body)])
    return leading[-max_chars:], body + trailing[:max_chars]


def _last_words(body: str) -> list[str]:
    """Return the last word with a letter or digit in it, and the punctuation behind."""
    words: list[str] = []
    for word in reversed(body[-_LAST_WORDS:].split()):
        words.insert(0, word)
        if any(map(str.isalnum, word)):
            break
    return words
