"""A file of a fake disk in memory: its content, and what a power cut may leave of it.

The rules of a power cut are listed in the module `fake_disk`.
"""

import random
from itertools import pairwise

PAGE = 4096


class FakeFile:
    """The bytes of a file on a fake disk, and the changes since its last sync."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self._synced = len(content)
        """The number of the file's leading bytes that are unchanged since the last sync."""
        self._cut_off = b""
        """The bytes after the first `_synced` ones that were truncated since the last sync."""
        self._changes: list[bytes | int] = []
        """The changes since the last sync: the bytes of a write, or the size after a truncation."""
        self._trusted = True

    def write(self, data: bytes) -> None:
        """Append bytes to the file, without a sync."""
        self.content += data
        self._changes.append(data)

    def truncate(self, size: int) -> None:
        """Set the file's size: truncate it, or extend it with zeros."""
        if size > len(self.content):
            self.write(bytes(size - len(self.content)))
            return
        if size < self._synced:
            self._cut_off = bytes(self.content[size : self._synced]) + self._cut_off
            self._synced = size
        del self.content[size:]
        self._changes.append(size)

    def sync(self) -> None:
        """Make all changes of the file durable, unless an earlier sync has failed."""
        if self._trusted:
            self._synced, self._cut_off = len(self.content), b""
            self._changes.clear()

    def distrust(self) -> None:
        """Record that a sync has failed: later syncs of the file make nothing durable."""
        self._trusted = False

    def crash(self, rng: random.Random) -> bytes:
        """Return a random content that a power cut may leave of the file."""
        versions = self._versions()
        if len(versions) == 1:
            return versions[0]
        way = rng.randrange(4)
        if way == 0:
            return versions[0]
        if way == 1:
            return versions[-1]
        if way == 2:
            return _torn(versions, rng)
        return _mixed(versions, rng)

    def _versions(self) -> list[bytes]:
        """Return the file's contents at its last sync, and after each change since then."""
        versions = [bytes(self.content[: self._synced]) + self._cut_off]
        for change in self._changes:
            last = versions[-1]
            versions.append(last[:change] if isinstance(change, int) else last + change)
        return versions


def _torn(versions: list[bytes], rng: random.Random) -> bytes:
    """Return a file's content in the middle of a random change."""
    before, behind = rng.choice(list(pairwise(versions)))
    longer, shorter = sorted((before, behind), key=len, reverse=True)
    return longer[: rng.randint(len(shorter), len(longer))]


def _mixed(versions: list[bytes], rng: random.Random) -> bytes:
    """Return a mix of a file's versions: each page is from a random one, or zeros if it is missing
    there.
    """
    first, second = len(rng.choice(versions)), len(rng.choice(versions))
    size = rng.choice([first, rng.randint(min(first, second), max(first, second))])
    pages = (rng.choice(versions)[at : at + PAGE].ljust(PAGE, b"\0") for at in range(0, size, PAGE))
    return b"".join(pages)[:size]
