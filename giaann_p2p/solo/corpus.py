"""A text to learn from: a file, a pipe, or a string.

A corpus is read twice: once for its digest, which identifies the job, and once to learn it. A
source that can be read only once is first copied to a temporary file. The digest of each block is
compared with that of the first reading before the block is used, so a file that is changed
meanwhile is never recorded as its earlier version.
"""

import hashlib
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from giaann_p2p.errors import TextError
from giaann_p2p.model.encoding import Guess
from giaann_p2p.model.text import BLOCK
from giaann_p2p.solo.source import Source, check_kind, translated


class Corpus:
    """An opened text."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.size = 0
        """The size of the text in bytes."""
        self._file = file
        self._blocks: list[bytes] = []  # the digest of each block
        self.guess = Guess()
        """A running guess at whether the text is in Latin-1 instead of UTF-8."""
        whole = hashlib.blake2b(digest_size=16)
        for block in iter(lambda: file.read(BLOCK), b""):
            whole.update(block)
            self.guess.read(block)
            self._blocks.append(_digest(block))
            self.size += len(block)
        self.digest = whole.hexdigest()
        self._read = 0

    @property
    def share(self) -> float:
        """The share of the text that was read so far, from 0 to 1."""
        return self._read / self.size if self.size else 1.0

    def blocks(self) -> Iterator[bytes]:
        """Yield the text in blocks, from the start; TextError if it has changed."""
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
                    "learn it again once it no longer changes"
                )
            self._read += len(block)
            yield block


@contextmanager
def opened(source: Source) -> Iterator[Corpus]:
    """Open a text; TextError, with the name of the text, if that fails."""
    check_kind(source)
    if isinstance(source, str) and _names_a_file(source):
        raise TextError(
            f"{source!r} is a single word, and a file's name: for the file, give Path({source!r})"
        )
    with ExitStack() as held:
        with translated(source) as name:
            corpus = Corpus(held.enter_context(_file(source)), name)
            if isinstance(source, Path):
                corpus.guess.refuse(name)
        yield corpus


def _names_a_file(text: str) -> bool:
    """Return whether a text is a file's name, which is probably a mistake for the file itself.

    A text that cannot be looked up, because it is too long for a name or may not be read, is none.
    """
    if not 0 < len(text) < 256 or any(map(str.isspace, text)):
        return False
    with suppress(OSError):
        return Path(text).is_file()
    return False


def _file(source: Source) -> BinaryIO:
    """Open a source as a file that can be read twice."""
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
