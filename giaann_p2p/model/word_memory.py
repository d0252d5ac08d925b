"""A bound on the words that spaCy remembers, and a guard against words that it confuses.

spaCy caches all that it knows of each word that it ever met, some 500 bytes, and how it cut each
piece of text between spaces; it reads known pieces many times as fast. So the cache may hold nearly
all words of a language. When there are more, the pipeline is loaded anew, with an empty cache. (In
spaCy's own memory zones, which forget words at their end, it does not cache pieces.)

spaCy identifies a word by a hash of 64 bits, and anybody can construct a word with the hash of
another one. It takes the second of two such words for the first. So the tokens of a text would
depend on all that was read before it, and a stranger's word could spoil another one for a worker.
But the tokens of a confused text do not spell it, so it is read again alone, by a copy of the
pipeline that forgets each text's words at its end. The words that even this copy confuses, in one
text or with one of its own, are the same on every peer.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc

_MOST_WORDS = 1 << 16


class WordMemory:
    """One pipeline, which is loaded anew when it has met too many words; thread-safe.

    `long_texts`: it reads texts of many sentences (see `PieceByPiece`).
    """

    def __init__(self, load: Callable[[], Language], long_texts: bool = False) -> None:
        self._load, self._lock, self._long_texts = load, threading.RLock(), long_texts
        self._forgetful: Language | None = None
        self._begin()

    def __repr__(self) -> str:
        return f"<WordMemory: {self.words:,} words>"

    @property
    def words(self) -> int:
        """The number of words met since the pipeline was loaded, with their prefixes etc."""
        return len(self._nlp.vocab.strings) - self._first

    @contextmanager
    def open(self) -> Iterator[Language]:
        """Yield the pipeline, to one thread at a time."""
        with self._lock:
            if self.words > _MOST_WORDS:
                self._begin()
            yield self._nlp

    @contextmanager
    def alone(self) -> Iterator[Language]:
        """Yield a copy of the pipeline that at the end forgets all words met meanwhile."""
        with self._lock:
            if self._forgetful is None:  # so far no text was confused
                self._forgetful = self._load()
            with self._forgetful.memory_zone():
                yield self._forgetful

    def _begin(self) -> None:
        self._nlp = self._load()
        self._nlp.tokenizer.max_cache_size = _MOST_WORDS  # type: ignore[union-attr]
        if self._long_texts:
            self._nlp.tokenizer = PieceByPiece(self._nlp.tokenizer)
        self._first = len(self._nlp.vocab.strings)


class PieceByPiece:
    """A tokenizer for long texts that remembers how it cut each piece of text between spaces.

    In a text, spaCy's own remembers only the pieces before the first exception (`don't`, `''`). So
    it reads new pieces before the text: those without exceptions together, others one by one.
    """

    def __init__(self, tokenizer: Any) -> None:  # noqa: ANN401  (spaCy's)
        self._tokenizer, self._met = tokenizer, set(tokenizer.rules)
        self.prefix_search, self.suffix_search = tokenizer.prefix_search, tokenizer.suffix_search

    def __repr__(self) -> str:
        return f"<PieceByPiece: {len(self._met):,} pieces>"

    def __call__(self, text: str) -> Doc:
        """Return the tokens of a text."""
        new = [piece for piece in dict.fromkeys(text.split()) if piece not in self._met]
        if len(self._met) + len(new) <= _MOST_WORDS:
            plain = " ".join(filter(str.isalpha, new))
            for piece in (plain, *(piece for piece in new if not piece.isalpha())):
                self._tokenizer(piece)
            self._met.update(new)
        doc: Doc = self._tokenizer(text)
        return doc


def tokenized(text: str, nlp: Language) -> Doc | None:
    """Return the tokens of a text; None if the pipeline confuses a word."""
    try:
        doc = nlp.make_doc(text)
    except SystemError:  # spaCy takes a word's hash of 0 for an error, and finds none
        return None
    return doc if doc.text == text and _ends_with(doc, text) else None


def _ends_with(doc: Doc, text: str) -> bool:
    """Return whether the last token is at the end of the text.

    It is not if a word has the letters of one that spaCy met, and the length of another one with
    the same hash: then the offsets of all tokens after it are wrong.
    """
    if not len(doc):
        return True
    last = doc[-1]
    return bool(last.idx + len(last.text_with_ws) == len(text))
