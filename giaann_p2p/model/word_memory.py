"""A bound on the words that spaCy remembers.

spaCy keeps all that it knows of each word that it ever met, some 500 bytes, and how it cut each
piece of text between spaces; it reads what it knows many times as fast. So it may remember nearly
all words of a language. When there are more, the pipeline is loaded anew, and begins with none.
(With spaCy's own memory zones, which forget words at their end, it does not remember pieces.)
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spacy.language import Language

_MOST_WORDS = 1 << 16


class WordMemory:
    """One pipeline, or a new one like it when it has met too many words; thread-safe."""

    def __init__(self, load: Callable[[], Language]) -> None:
        self._load, self._lock = load, threading.RLock()
        self._begin()

    def __repr__(self) -> str:
        return f"<WordMemory: {self.words:,} words>"

    @property
    def words(self) -> int:
        """The number of words met since the pipeline was loaded, and of their prefixes and such."""
        return len(self._nlp.vocab.strings) - self._first

    @contextmanager
    def open(self) -> Iterator[Language]:
        """Yield the pipeline, to one thread at a time."""
        with self._lock:
            if self.words > _MOST_WORDS:
                self._begin()
            yield self._nlp

    def _begin(self) -> None:
        self._nlp = self._load()
        self._nlp.tokenizer.max_cache_size = _MOST_WORDS  # type: ignore[union-attr]
        self._first = len(self._nlp.vocab.strings)
