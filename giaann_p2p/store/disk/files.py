"""A flat directory of files: the whole interface between the store and a disk.

All access to the store's files goes through `Files`, so that the same code runs on a real directory
and on one in memory that loses power when a test wants it to. The rules for both: written bytes are
durable once `Appender.sync` has returned, a name is durable once `Files.sync` has returned, and
every failure is an OSError. Files are read into memory, not mapped: with a mapping, a bad sector
would kill the process, and so would another process that truncates the file.
"""

import os
from contextlib import closing
from pathlib import Path
from typing import Protocol

Data = bytes | bytearray | memoryview
"""The types of byte sequences that can be written to a file."""

_PARTS = 1024
"""The most pieces that one system call writes (IOV_MAX)."""


class Appender(Protocol):
    """A file that is open for writing at its end."""

    @property
    def size(self) -> int:
        """The size of the file in bytes."""

    def write(self, *data: Data) -> None:
        """Append the pieces in order; OSError if not all of them could be written."""

    def sync(self) -> None:
        """Sync the file: return once everything written is on the disk.

        After an OSError the file can no longer be trusted: the next sync may succeed although pages
        of this one are lost.
        """

    def truncate(self, size: int) -> None:
        """Truncate the file to a size."""

    def close(self) -> None:
        """Close the file, without a sync."""


class Files(Protocol):
    """A flat directory of files, on a real disk or on a fake one."""

    def path(self, name: str) -> str:
        """Return the path of a file, as messages name it."""

    def names(self) -> list[str]:
        """Return the names of all files in the directory, sorted."""

    def read(self, name: str, size: int = -1, start: int = 0) -> bytes:
        """Read a file, or at most `size` bytes of it, from offset `start` on."""

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""

    def create(self, name: str) -> Appender:
        """Create a file; FileExistsError if it exists."""

    def reopen(self, name: str) -> Appender:
        """Open an existing file for appending."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file; it replaces any file that has the new name."""

    def remove(self, name: str) -> None:
        """Remove a file."""

    def sync(self) -> None:
        """Sync the directory: return once all names in it are on the disk."""


class DiskFiles:
    """The files of a real directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def path(self, name: str) -> str:
        """Return the path of a file, as messages name it."""
        return str(self._directory / name)

    def names(self) -> list[str]:
        """Return the names of all plain files, sorted; without links, pipes and folders."""
        with os.scandir(self._directory) as entries:
            return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))

    def read(self, name: str, size: int = -1, start: int = 0) -> bytes:
        """Read a file, or at most `size` bytes of it, from offset `start` on."""
        with (self._directory / name).open("rb", buffering=0) as file:
            file.seek(start)
            if size >= 0:
                return file.read(size) or b""
            return file.readall()

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return (self._directory / name).stat().st_size

    def create(self, name: str) -> Appender:
        """Create a file; FileExistsError if it exists."""
        return _DiskAppender(self._directory / name, os.O_CREAT | os.O_EXCL)

    def reopen(self, name: str) -> Appender:
        """Open an existing file for appending."""
        return _DiskAppender(self._directory / name, 0)

    def rename(self, old: str, new: str) -> None:
        """Rename a file; it replaces any file that has the new name."""
        (self._directory / old).replace(self._directory / new)

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self._directory / name).unlink()

    def sync(self) -> None:
        """Sync the directory: return once all names in it are on the disk."""
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


_sync_data = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync


def _rest(parts: list[memoryview], done: int) -> list[memoryview]:
    """Return the pieces that are still to be written after the first `done` bytes of them all."""
    for at, part in enumerate(parts):
        if done < part.nbytes:
            return [part.cast("B")[done:], *parts[at + 1 :]]
        done -= part.nbytes
    return []
