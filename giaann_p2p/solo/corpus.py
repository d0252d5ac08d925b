"""A text to learn from: a file, a pipe, or a string.

A corpus is read twice, once for its digest, which names the job, and once to learn; so what can be
read only once is first copied to a temporary file. What is learned is what was digested: each block
is compared with the first reading before any of it is used, so a file that is written to meanwhile
is never booked as what it was.
"""

import errno
import hashlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from giaann_p2p.errors import TextError, UsageError
from giaann_p2p.model.text import BLOCK, Sentence, document_sentences

Source = str | Path
"""A text itself (str), or the file that holds it (Path); `Path("-")` is standard input."""


class Corpus:
    """An opened text."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.size = 0
        """In bytes."""
        self._file = file
        self._blocks: list[bytes] = []  # the digest of each
        whole = hashlib.blake2b(digest_size=16)
        for block in iter(lambda: file.read(BLOCK), b""):
            whole.update(block)
            self._blocks.append(_digest(block))
            self.size += len(block)
        self.digest = whole.hexdigest()
        self._read = 0

    def sentences(self, max_chars: int) -> Iterator[Sentence]:
        """Read the sentences, from the start."""
        return document_sentences(self._again(), self.name, max_chars)

    @property
    def share(self) -> float:
        """How much of it was read so far, from 0 to 1."""
        return self._read / self.size if self.size else 1.0

    def _again(self) -> Iterator[bytes]:
        self._read = 0
        for at, digest in enumerate(self._blocks):
            try:
                self._file.seek(at * BLOCK)
                block = self._file.read(min(BLOCK, self.size - at * BLOCK))
            except OSError as error:
                raise TextError(f"{self.name}: {error.strerror}") from None
            if _digest(block) != digest:
                raise TextError(
                    f"{self.name} changed while it was read, about byte {at * BLOCK:,}; "
                    "learn it again when it no longer does"
                )
            self._read += len(block)
            yield block


@contextmanager
def opened(source: Source) -> Iterator[Corpus]:
    """Open a text; TextError, with the name, when that fails."""
    _check_kind(source)
    if isinstance(source, str) and _names_a_file(source):
        raise TextError(
            f"{source!r} is a text of one word, and a file's name: give Path({source!r})"
        )
    with ExitStack() as held:
        with _told(source) as name:
            corpus = Corpus(held.enter_context(_file(source)), name)
        yield corpus


def check(source: Path) -> None:
    """Raise TextError for a file that cannot be opened, before anything else is done."""
    if str(source) != "-":
        with _told(source):
            source.stat()
            if source.is_dir():
                raise IsADirectoryError
            if not os.access(source, os.R_OK):  # opened it is not: a pipe's writer would notice
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


@contextmanager
def _told(source: Source) -> Iterator[str]:
    """Raise what goes wrong with a file as TextError, with its name, which is given."""
    name = os.fsencode(source).decode(errors="replace") if isinstance(source, Path) else "text"
    try:
        yield name
    except IsADirectoryError:
        raise TextError(f"{name} is a directory; name the files in it: {name}/*.txt") from None
    except OSError as error:
        raise TextError(f"{name}: {error.strerror}") from None


def _check_kind(source: object) -> None:
    if not isinstance(source, str | Path):
        raise UsageError(f"a text is a str, and the file of one a Path; this is {source!r}")


def _names_a_file(text: str) -> bool:
    """Tell whether somebody gave a file's name as a text; a text of one word teaches nothing."""
    return 0 < len(text) < 256 and not any(map(str.isspace, text)) and Path(text).is_file()


def _file(source: Source) -> BinaryIO:
    """Return what can be read twice."""
    if isinstance(source, str):
        return io.BytesIO(source.encode("utf-8", "surrogatepass"))
    if str(source) == "-":
        return _copied(sys.stdin.buffer)
    if source.is_file():
        return source.open("rb")
    with source.open("rb") as file:
        return _copied(file)


def _copied(stream: BinaryIO) -> BinaryIO:
    copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
    try:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
    except BaseException:
        copy.close()
        raise
    return copy


def _digest(block: bytes) -> bytes:
    return hashlib.blake2b(block, digest_size=16).digest()
