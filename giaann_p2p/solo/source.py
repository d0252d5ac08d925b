"""Sources of text: a string, a file, or standard input.

Checking a source imports nothing slow, so that a wrong name is reported at once.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from giaann_p2p.errors import TextError, UsageError
from giaann_p2p.model.encoding import Guess, refuse_marked

Source = str | Path
"""A text itself (str), or a file with the text (Path); `Path("-")` means standard input."""
_START = 1 << 16


def check(source: Path) -> None:
    """Raise TextError for a file that cannot be learned; commands call this before other work."""
    if str(source) != "-":
        with translated(source):
            source.stat()
            if source.is_dir():
                raise IsADirectoryError
            if not os.access(source, os.R_OK):  # without opening it, which a pipe's writer notices
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            if source.is_file():
                _check_start(source)


@contextmanager
def translated(source: Source) -> Iterator[str]:
    """Turn an OSError in the block into a TextError that names the source; yield that name."""
    name = _name(source) if isinstance(source, Path) else "text"
    try:
        yield name
    except IsADirectoryError:
        raise TextError(f"{name} is a directory; name the files in it: {name}/*.txt") from None
    except OSError as error:
        raise TextError(f"{name}: {error.strerror}") from None


def _check_start(file: Path) -> None:
    """Raise TextError for a file whose beginning is not in UTF-8."""
    with file.open("rb") as opened:
        start = opened.read(_START)
    name, guess = _name(file), Guess()
    refuse_marked(start, name)
    guess.read(start)
    guess.refuse(name)


def _name(file: Path) -> str:
    return os.fsencode(file).decode(errors="replace")


def check_kind(source: object) -> None:
    """Raise UsageError for a value that cannot be a source."""
    if not isinstance(source, str | Path):
        raise UsageError(f"a text must be a str, or its file a Path; this is {source!r}")
