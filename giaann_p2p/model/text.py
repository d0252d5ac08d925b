"""Bytes to sentences, as a stream: memory stays bounded whatever the file holds.

Sentences are those that spaCy's sentencizer finds in the whole document with its newlines read as
spaces. It is run on blocks of fixed size; the last sentence of a block, perhaps unfinished, is
carried into the next. Since tokens never span white space and the sentencizer looks only back to
the start of the sentence, that gives the same sentences.

What no sentence can be is cut short before it costs anything: a word of more than 1,000 characters
and a sentence of more than 256 characters a token are each replaced by a mark (a Unicode
noncharacter), and the sentence that holds the mark is later skipped and counted.
"""

import codecs
import io
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from giaann_p2p.errors import TextError
from giaann_p2p.model.english import sentencizer

BLOCK = 1 << 16
MAX_WORD = 1000
LONG_WORD = "\ufdd0"
LONG_SENTENCE = "\ufdd1"

_LONG_WORD = re.compile(rf"\S{{{MAX_WORD + 1},}}")
_FOREIGN_ENCODINGS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


class Sentence(NamedTuple):
    """A sentence and the line of the document on which it starts, from 1."""

    text: str
    line: int


def document_sentences(file: BinaryIO, name: str, max_chars: int) -> Iterator[Sentence]:
    """Read the sentences of a UTF-8 document; TextError, with its name, for another encoding."""
    return sentences(decoded(file, name), max_chars)


def text_sentences(text: str, max_chars: int) -> Iterator[Sentence]:
    """Split a text that is already in memory."""
    return document_sentences(io.BytesIO(text.encode("utf-8", "surrogatepass")), "text", max_chars)


def decoded(file: BinaryIO, name: str) -> Iterator[str]:
    """Decode UTF-8 in pieces; what is not UTF-8 becomes U+FFFD, and its sentences are skipped."""
    piece = file.read(BLOCK)
    for mark, encoding in _FOREIGN_ENCODINGS.items():
        if piece.startswith(mark):
            raise TextError(
                f"{name}:1: the text is {encoding}, not UTF-8; "
                f"convert it first: iconv -f {encoding} -t UTF-8"
            )
    utf8 = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
    decoder = io.IncrementalNewlineDecoder(utf8, translate=True)
    while piece:
        yield decoder.decode(piece)
        piece = file.read(BLOCK)
    yield decoder.decode(b"", final=True)


def sentences(pieces: Iterable[str], max_chars: int) -> Iterator[Sentence]:
    """Split a document that comes in pieces, whose sizes make no difference."""
    carried, line = "", 1
    for block in _blocks(pieces):
        text = carried + block
        cut = _end_of_last_whole_word(text)
        whole = _LONG_WORD.sub(LONG_WORD, text[:cut])
        spans = _split(whole)
        for start, sentence in spans[:-1]:
            yield from _kept(sentence, line + whole.count("\n", 0, start), max_chars)
        unfinished = spans[-1][0] if spans else 0
        line += whole.count("\n", 0, unfinished)
        abridged = _abridge(whole[unfinished:], max_chars)
        line += whole.count("\n", unfinished) - abridged.count("\n")
        carried = abridged + text[cut : cut + MAX_WORD + 2]
    whole = _LONG_WORD.sub(LONG_WORD, carried)
    for start, sentence in _split(whole):
        yield from _kept(sentence, line + whole.count("\n", 0, start), max_chars)


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
    for span in sentencizer()(text.replace("\n", " ")).sents:
        sentence = span.text.lstrip()
        found.append((span.start_char + len(span.text) - len(sentence), sentence))
    return found


def _kept(sentence: str, line: int, max_chars: int) -> Iterator[Sentence]:
    if sentence:
        too_long = len(sentence) > max_chars or LONG_SENTENCE in sentence
        yield Sentence(LONG_SENTENCE if too_long else sentence, line)


def _end_of_last_whole_word(text: str) -> int:
    """Return the place of the last white space: what follows may go on in the next block."""
    return next((i for i in range(len(text) - 1, -1, -1) if text[i].isspace()), 0)


def _abridge(unfinished: str, max_chars: int) -> str:
    """Keep of a sentence that goes on what can still matter: bounded, with the same outcome."""
    body = unfinished.strip()
    if not body:
        return unfinished[-max_chars:]
    before, _, after = unfinished.partition(body)
    if len(body) > max_chars:  # its last word tells whether the sentence has ended
        body = f"{LONG_SENTENCE} {body.split()[-1]}"
    return before[-max_chars:] + body + after[:max_chars]
