"""A flat directory of files: all that the store asks of a disk, and nothing more.

Whatever keeps the store's files goes through `Files`, so that the same code runs on a real
directory and on one in memory that loses power when a test wants it to. The rules for both:
what was written is safe once `Appender.sync` has returned, a name is safe once `Files.sync` has
returned, and anything that goes wrong is an OSError. Files are read as a whole and into memory, not
mapped: a bad sector behind a mapping kills the process, and so does a file that somebody cuts.
"""

import os
from contextlib import closing
from pathlib import Path
from typing import Protocol

Data = bytes | bytearray | memoryview
"""Bytes in a row."""

_PARTS = 1024
"""The most pieces that one write takes (IOV_MAX)."""


class Appender(Protocol):
    """A file that is open for writing at its end."""

    @property
    def size(self) -> int:
        """In bytes."""

    def write(self, *data: Data) -> None:
        """Write all of the pieces, one behind the other; OSError where not all of it went in."""

    def sync(self) -> None:
        """Return when everything written is on the disk. After an OSError trust the file no more:
        the next sync may well succeed without what this one lost."""

    def truncate(self, size: int) -> None:
        """Cut the file to a size."""

    def close(self) -> None:
        """Let go of the file, without a sync."""


class Files(Protocol):
    """A flat directory."""

    def path(self, name: str) -> str:
        """Return what to call a file in a message."""

    def names(self) -> list[str]:
        """Return the names of all files, in order."""

    def read(self, name: str, size: int = -1, start: int = 0) -> bytes:
        """Read a file, or only so many bytes from an offset on, fewer where it ends before."""

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""

    def create(self, name: str) -> Appender:
        """Make a file; FileExistsError where there is one."""

    def reopen(self, name: str) -> Appender:
        """Go on at the end of a file."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; whatever had that name is gone."""

    def remove(self, name: str) -> None:
        """Remove a file."""

    def sync(self) -> None:
        """Return when the directory itself, which name is which file, is on the disk."""


class DiskFiles:
    """The files of a real directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, name: str) -> str:
        """Return what to call a file in a message."""
        return str(self._directory / name)

    def names(self) -> list[str]:
        """Return the names of all files, in order."""
        with os.scandir(self._directory) as entries:
            return sorted(entry.name for entry in entries if entry.is_file())

    def read(self, name: str, size: int = -1, start: int = 0) -> bytes:
        """Read a file, or only so many bytes from an offset on, fewer where it ends before."""
        with (self._directory / name).open("rb", buffering=0) as file:
            file.seek(start)
            if size >= 0:
                return file.read(size) or b""
            return file.readall()

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return (self._directory / name).stat().st_size

    def create(self, name: str) -> Appender:
        """Make a file; FileExistsError where there is one."""
        return _DiskAppender(self._directory / name, os.O_CREAT | os.O_EXCL)

    def reopen(self, name: str) -> Appender:
        """Go on at the end of a file."""
        return _DiskAppender(self._directory / name, 0)

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; whatever had that name is gone."""
        (self._directory / old).replace(self._directory / new)

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self._directory / name).unlink()

    def sync(self) -> None:
        """Return when the directory itself, which name is which file, is on the disk."""
        with closing(_Handle(self._directory, os.O_RDONLY | os.O_DIRECTORY)) as handle:
            os.fsync(handle.number)


class _Handle:
    def __init__(self, path: Path, flags: int) -> None:
        self.number = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def close(self) -> None:
        if self.number >= 0:
            handle, self.number = self.number, -1
            os.close(handle)


class _DiskAppender:
    def __init__(self, path: Path, flags: int) -> None:
        self._handle = _Handle(path, flags | os.O_WRONLY | os.O_APPEND)
        self._size = os.fstat(self._handle.number).st_size

    @property
    def size(self) -> int:
        return self._size

    def write(self, *data: Data) -> None:
        left = [view for view in (memoryview(piece) for piece in data) if view.nbytes]
        while left:
            done = os.writev(self._handle.number, left[:_PARTS])
            self._size += done
            left = _rest(left, done)

    def sync(self) -> None:
        _sync_data(self._handle.number)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._handle.number, size)
        self._size = size

    def close(self) -> None:
        self._handle.close()


_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has none


def _rest(parts: list[memoryview], done: int) -> list[memoryview]:
    """Return what is left of the parts behind so many bytes."""
    for at, part in enumerate(parts):
        if done < part.nbytes:
            return [part.cast("B")[done:], *parts[at + 1 :]]
        done -= part.nbytes
    return []
