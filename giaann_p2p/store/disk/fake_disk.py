"""A disk in memory that can lose its power, fail and run full, like a real one at its worst.

It remembers what was synced. `FakeDisk.crash` returns the disk as a power cut may leave it; the
rules are those that POSIX gives, not the kinder ones of one file system:

- Of what was written to a file since its last sync, each page of 4,096 bytes is kept or not,
  whatever happened to the others, and the file has any size it had meanwhile or one between.
- Of what was done to a name since the directory's last sync, any step may be the last one kept,
  whatever happened to other names. A synced file whose name was not synced may be gone.
- After a sync that failed, no later sync of that file promises anything.
"""

import errno
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from giaann_p2p.store.disk.fake_file import FakeFile
from giaann_p2p.store.disk.files import Appender, Data


@dataclass
class _Plan:
    """The operations that are going to fail."""

    first: int = 0
    last: int = -1
    error: int = errno.EIO
    partial: bool = False


@dataclass
class FakeDisk:
    """A flat directory in memory; see `Files`."""

    capacity: int | None = None
    """In bytes; a write that would take more raises ENOSPC once the disk is full."""
    operations: int = 0
    """How many times something was changed, or was to be: writes, syncs and all the others."""
    _names: dict[str, FakeFile] = field(default_factory=dict)
    _history: dict[str, list[FakeFile | None]] = field(default_factory=dict)
    """What each name was since the last sync of the directory, first what it was then."""
    _plan: _Plan = field(default_factory=_Plan)

    def fail_at(self, n: int, error: int, partial: bool = False, times: int = 1) -> None:
        """Let the n-th change from now on, and those behind it, fail with an error of errno.

        `partial`: half of a write is written, and a name is changed before that fails.
        """
        first = self.operations + n
        self._plan = _Plan(first, first + times - 1, error, partial)

    def crash(self, rng: random.Random) -> "FakeDisk":
        """Return the disk as a power cut may leave it. This one stays as it is."""
        kept = {name: file for name, file in self._names.items() if name not in self._history}
        for name, files in self._history.items():
            file = rng.choice([*files, files[-1]])
            if file is not None:
                kept[name] = file
        found = {name: FakeFile(kept[name].crash(rng)) for name in sorted(kept)}
        return FakeDisk(self.capacity, _names=found)

    def path(self, name: str) -> str:
        """Return what to call a file in a message."""
        return name

    def names(self) -> list[str]:
        """Return the names of all files, in order."""
        return sorted(self._names)

    def read(self, name: str, size: int = -1, start: int = 0) -> bytes:
        """Read a file, or only so many bytes from an offset on, fewer where it ends before."""
        content = self._file(name).content
        return bytes(content[start:] if size < 0 else content[start : start + size])

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return len(self._file(name).content)

    def create(self, name: str) -> Appender:
        """Make a file; FileExistsError where there is one."""
        if name in self._names:
            raise _error(errno.EEXIST, name)
        file = FakeFile()
        self.change(lambda: self._set(name, file))
        return _FakeAppender(self, file)

    def reopen(self, name: str) -> Appender:
        """Go on at the end of a file."""
        return _FakeAppender(self, self._file(name))

    def rename(self, old: str, new: str) -> None:
        """Give a file another name; whatever had that name is gone."""
        file = self._file(old)

        def move() -> None:
            self._set(old, None)
            self._set(new, file)

        self.change(move)

    def remove(self, name: str) -> None:
        """Remove a file."""
        self._file(name)
        self.change(lambda: self._set(name, None))

    def sync(self) -> None:
        """Return when the directory itself, which name is which file, is on the disk."""
        self.change(self._history.clear)

    def damage(self, name: str, content: bytes) -> None:
        """Put other bytes in a file's place, as a bad disk does."""
        self._file(name)
        self._names[name] = FakeFile(content)

    def change(self, make: Callable[[], object], half: Callable[[], object] | None = None) -> None:
        """Make a change, unless it is one that fails; `half` of it is what that leaves."""
        self.operations += 1
        plan = self._plan
        if not plan.first <= self.operations <= plan.last:
            make()
            return
        if plan.partial:
            (half or make)()
        raise _error(plan.error)

    @property
    def free(self) -> int | None:
        """How many bytes may still be written; None for any number."""
        if self.capacity is None:
            return None
        return self.capacity - sum(len(file.content) for file in self._names.values())

    def _file(self, name: str) -> FakeFile:
        try:
            return self._names[name]
        except KeyError:
            raise _error(errno.ENOENT, name) from None

    def _set(self, name: str, file: FakeFile | None) -> None:
        self._history.setdefault(name, [self._names.get(name)]).append(file)
        if file is None:
            del self._names[name]
        else:
            self._names[name] = file


class _FakeAppender:
    def __init__(self, disk: FakeDisk, file: FakeFile) -> None:
        self._disk, self._file, self._closed = disk, file, False

    @property
    def size(self) -> int:
        return len(self._file.content)

    def write(self, *data: Data) -> None:
        self._open()
        whole, free = b"".join(data), self._disk.free
        fits = whole if free is None else whole[: max(free, 0)]
        half = fits[: len(whole) // 2]
        self._disk.change(lambda: self._file.write(fits), lambda: self._file.write(half))
        if len(fits) < len(whole):
            raise _error(errno.ENOSPC)

    def sync(self) -> None:
        self._open()
        try:
            self._disk.change(self._file.sync, lambda: None)
        except OSError:
            self._file.distrust()
            raise

    def truncate(self, size: int) -> None:
        self._open()
        self._disk.change(lambda: self._file.truncate(size), lambda: None)

    def close(self) -> None:
        self._closed = True

    def _open(self) -> None:
        if self._closed:
            raise _error(errno.EBADF)


def _error(number: int, name: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), name)
