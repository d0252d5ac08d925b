"""A disk in memory for tests: it can lose power, fail and run full, as badly as a real disk.

The disk tracks what was synced. `FakeDisk.crash` returns it as a power cut may leave it. The rules
are those of POSIX, not the milder ones of a particular file system:

- If a file has unsynced writes, each of its pages of 4,096 bytes is kept or lost independently of
  the others, and the file has any size that it had since its last sync, or one in between.
- If a name has unsynced changes, any of them may be the last one kept, independently of other
  names. A synced file whose name was not synced may be gone.
- If a sync of a file has failed, later syncs of that file guarantee nothing.
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
    """Which operations of a fake disk fail, and how they fail."""

    first: int = 0
    last: int = -1
    error: int = errno.EIO
    partial: bool = False


@dataclass
class FakeDisk:
    """A flat directory of files in memory, with the interface of `Files`."""

    capacity: int | None = None
    """The most bytes of all files together; a write beyond them fails with ENOSPC. None means
    unlimited."""
    operations: int = 0
    """The number of writes, syncs, renames and other changes so far, including failed ones."""
    _names: dict[str, FakeFile] = field(default_factory=dict)
    _history: dict[str, list[FakeFile | None]] = field(default_factory=dict)
    """For each name that changed since the directory's last sync, the files that had it; the synced
    one is first."""
    _plan: _Plan = field(default_factory=_Plan)

    def fail_at(self, n: int, error: int, partial: bool = False, times: int = 1) -> None:
        """Make `times` consecutive changes fail with an errno, from the n-th one after now.

        `partial`: a failing write writes half, and a failing change of a name takes effect.
        """
        first = self.operations + n
        self._plan = _Plan(first, first + times - 1, error, partial)

    def crash(self, rng: random.Random) -> "FakeDisk":
        """Return a new disk with what a power cut may leave of this one, which does not change."""
        kept = {name: file for name, file in self._names.items() if name not in self._history}
        for name, files in self._history.items():
            file = rng.choice([*files, files[-1]])
            if file is not None:
                kept[name] = file
        found = {name: FakeFile(kept[name].crash(rng)) for name in sorted(kept)}
        return FakeDisk(self.capacity, _names=found)

    def path(self, name: str) -> str:
        """Return the path of a file for messages; on this disk it is the name."""
        return name

    def names(self) -> list[str]:
        """Return the names of all files in the directory, sorted."""
        return sorted(self._names)

    def read(self, name: str, size: int = -1, start: int = 0) -> bytes:
        """Read a file, or at most `size` bytes of it, from offset `start` on."""
        content = self._file(name).content
        return bytes(content[start:] if size < 0 else content[start : start + size])

    def size(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return len(self._file(name).content)

    def create(self, name: str) -> Appender:
        """Create a file; FileExistsError if it exists."""
        if name in self._names:
            raise _error(errno.EEXIST, name)
        file = FakeFile()
        self.change(lambda: self._set(name, file))
        return _FakeAppender(self, file)

    def reopen(self, name: str) -> Appender:
        """Open an existing file for appending."""
        return _FakeAppender(self, self._file(name))

    def rename(self, old: str, new: str) -> None:
        """Rename a file; it replaces any file that has the new name."""
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
        """Sync the directory: return once all its names are on the disk."""
        self.change(self._history.clear)

    def damage(self, name: str, content: bytes) -> None:
        """Replace the bytes of a file, as a bad disk may do."""
        self._file(name)
        self._names[name] = FakeFile(content)

    def change(self, make: Callable[[], object], half: Callable[[], object] | None = None) -> None:
        """Call `make`, unless this change is planned to fail: then raise the planned error.

        A partial failure first calls `half`, or `make` if there is no `half`.
        """
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
        """The number of bytes that can still be written to the disk; None if unlimited."""
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
