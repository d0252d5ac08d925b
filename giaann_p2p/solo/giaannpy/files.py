"""Reads single files of a stranger's folder: only plain files, and only up to a size limit."""

import os
import stat
from pathlib import Path

from giaann_p2p.errors import DatabaseError

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
"""With these flags, a link is not followed, and a pipe without a writer does not block."""


def plain(path: Path, most: int) -> bytes:
    """Return a file's content; DatabaseError unless it is a plain file of at most `most` bytes."""
    try:
        opened = os.open(path, _FLAGS)
    except FileNotFoundError:
        raise DatabaseError(f"{path} is missing; copy the whole database again") from None
    except OSError as error:
        linked = " (links are not followed)" if path.is_symlink() else ""
        raise DatabaseError(f"{path} cannot be read: {error.strerror}{linked}") from None
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode):  # before `fdopen`, which fails for a folder
        os.close(opened)
        raise DatabaseError(f"{path} is no plain file; copy the database's files themselves")
    with os.fdopen(opened, "rb") as file:
        if found.st_size > most:
            raise DatabaseError(
                f"{path} has {found.st_size:,} bytes; such a file has at most {most:,}"
            )
        try:
            return file.read(most)
        except OSError as error:
            raise DatabaseError(f"{path} cannot be read: {error.strerror}") from None
