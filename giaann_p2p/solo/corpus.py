"""A text to learn from: a file, a pipe, or a string.

A corpus is read twice, once for its digest, which names the job, and once to learn; so what can be
read only once is first copied to a temporary file.
"""

import hashlib
import io
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from giaann_p2p.errors import TextError
from giaann_p2p.model.text import Sentence, document_sentences

Source = str | Path
"""A text itself (str), or the file that holds it (Path); `Path("-")` is standard input."""


@dataclass(frozen=True)
class Corpus:
    """An opened text."""

    name: str
    digest: str
    size: int
    """In bytes."""
    file: BinaryIO

    def sentences(self, max_chars: int) -> Iterator[Sentence]:
        """Read the sentences, from the start."""
        self.file.seek(0)
        return document_sentences(self.file, self.name, max_chars)

    @property
    def share(self) -> float:
        """How much of it was read so far, from 0 to 1."""
        return self.file.tell() / self.size if self.size else 1.0


@contextmanager
def opened(source: Source) -> Iterator[Corpus]:
    """Open a text; TextError, with the name, when that fails."""
    name = str(source) if isinstance(source, Path) else "text"
    try:
        with _file(source) as file:
            digest = hashlib.blake2b(digest_size=16)
            while block := file.read(1 << 20):
                digest.update(block)
            yield Corpus(name, digest.hexdigest(), file.tell(), file)
    except IsADirectoryError:
        raise TextError(f"{name} is a directory; name the files in it: {name}/*.txt") from None
    except OSError as error:
        if error.filename is not None and str(error.filename) != name:
            raise
        raise TextError(f"{name}: {error.strerror}") from None


@contextmanager
def _file(source: Source) -> Iterator[BinaryIO]:
    if isinstance(source, str):
        yield io.BytesIO(source.encode("utf-8", "surrogatepass"))
    elif str(source) == "-":
        with _copied(sys.stdin.buffer) as file:
            yield file
    else:
        with source.open("rb") as file:
            if stat.S_ISREG(source.stat().st_mode):
                yield file
            else:
                with _copied(file) as copy:
                    yield copy


@contextmanager
def _copied(stream: BinaryIO) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield cast(BinaryIO, copy)
