"""The words that every peer knows, so that they are encoded by number: the tokens of o200k.

A word's id is a hash, which takes eight bytes and cannot be compressed. In a long row, and in the
part of a chunk that one peer of many gets, ids and texts were most of the bytes. The names of the
tokeniser's tokens are nearly all words of the profile `subwords`, and the frequent words of any
English text. Here they are numbered in the order of their ids.

The vocabulary is a part of the encoding, not of a model: it never changes, and peers that have no
tokeniser have it, too. It is a file, of which all processes of a machine share one copy in memory,
because a loaded tokeniser takes 150 MB.

    ids       199,998 numbers of eight bytes, little-endian, ascending
    lengths   the bytes of each text, in one byte
    texts     the texts in UTF-8, one after the other
"""

import mmap
from functools import cached_property, lru_cache
from importlib import resources

import numpy as np
import xxhash

from giaann_p2p.errors import PipelineError
from giaann_p2p.model.sequence import Ids, Ints

SIZE = 199_998
"""The number of words in the vocabulary."""
_CHECKSUM = "f56dc5d4f39281c2199cdd400a2ad60b"
"""xxh3_128 of the file."""
_ID_BYTES = 8
_OFTEN = 1 << 14
"""The number of decoded texts to keep, so that deltas share them; they take some 1 MB."""


class Vocabulary:
    """The words, numbered in the order of their ids."""

    def __init__(self, data: mmap.mmap | bytes) -> None:
        self.ids: Ids = np.frombuffer(data, "<u8", SIZE)
        """Shape [SIZE]: the id of each word, ascending."""
        self._lengths = np.frombuffer(data, np.uint8, SIZE, SIZE * _ID_BYTES)
        self._texts = memoryview(data)[SIZE * (_ID_BYTES + 1) :]
        self.text = lru_cache(_OFTEN)(self._text)
        """Return the text of a word, by its number."""

    def __repr__(self) -> str:
        return f"<Vocabulary of {SIZE:,} words>"

    def numbers(self, ids: Ids) -> Ints:
        """Return the number of each word, by ascending ids; -1 for a word that it does not have."""
        at = self.ids.searchsorted(ids)
        found: Ints = np.where(self.ids.take(at, mode="clip") == ids, at, -1)
        return found

    def _text(self, number: int) -> str:
        end = int(self._ends[number])
        return bytes(self._texts[end - int(self._lengths[number]) : end]).decode()

    @cached_property
    def _ends(self) -> Ints:
        return self._lengths.cumsum(dtype=np.uint32)


def _mapped() -> mmap.mmap:
    """Map the file; PipelineError if it is damaged: all parcels depend on it, and no checksum of
    theirs covers it.
    """
    path = resources.files("giaann_p2p.store.codec") / "data" / "vocabulary.bin"
    with resources.as_file(path) as name, name.open("rb") as file:
        found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if xxhash.xxh3_128_hexdigest(found) != _CHECKSUM:
        raise PipelineError(f"{path} is damaged: install giaann-p2p again")
    return found


VOCABULARY = Vocabulary(_mapped())
