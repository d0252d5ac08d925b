"""A file of the disk in memory: what is in it, and what of that a power cut may leave.

See `fake_disk` for the rules.
"""

import random
from itertools import pairwise

PAGE = 4096


class FakeFile:
    """The bytes of a file, and each change since its last sync."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self._synced = len(content)
        """So many of the bytes are as they were at the last sync."""
        self._cut_off = b""
        """What else was there at the last sync, and was cut off since then."""
        self._changes: list[bytes | int] = []
        """Since the last sync: what was written, or the size that the file was cut to."""
        self._trusted = True

    def write(self, data: bytes) -> None:
        """Add bytes at the end."""
        self.content += data
        self._changes.append(data)

    def truncate(self, size: int) -> None:
        """Cut, or fill up with zeros."""
        if size > len(self.content):
            self.write(bytes(size - len(self.content)))
            return
        if size < self._synced:
            self._cut_off = bytes(self.content[size : self._synced]) + self._cut_off
            self._synced = size
        del self.content[size:]
        self._changes.append(size)

    def sync(self) -> None:
        """Keep everything for good, unless a sync has failed."""
        if self._trusted:
            self._synced, self._cut_off = len(self.content), b""
            self._changes.clear()

    def distrust(self) -> None:
        """Book a sync that failed: those behind it keep nothing."""
        self._trusted = False

    def crash(self, rng: random.Random) -> bytes:
        """Return what a power cut may leave of the file."""
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
        """Return the file as it was at its last sync and behind each change since then."""
        versions = [bytes(self.content[: self._synced]) + self._cut_off]
        for change in self._changes:
            last = versions[-1]
            versions.append(last[:change] if isinstance(change, int) else last + change)
        return versions


def _torn(versions: list[bytes], rng: random.Random) -> bytes:
    """Stop in the middle of a change."""
    before, behind = rng.choice(list(pairwise(versions)))
    longer, shorter = sorted((before, behind), key=len, reverse=True)
    return longer[: rng.randint(len(shorter), len(longer))]


def _mixed(versions: list[bytes], rng: random.Random) -> bytes:
    """Take each page as it was at some time; zeros where it was not there yet."""
    first, second = len(rng.choice(versions)), len(rng.choice(versions))
    size = rng.choice([first, rng.randint(min(first, second), max(first, second))])
    pages = (rng.choice(versions)[at : at + PAGE].ljust(PAGE, b"\0") for at in range(0, size, PAGE))
    return b"".join(pages)[:size]
