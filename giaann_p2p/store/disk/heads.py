"""Lists the records of an old log file by their heads, without reading the payloads.

A record's head is only protected by the record's checksum, and checking that takes the payload. So
the results here are hints: a caller that uses one must read the whole record. Each head leads to
the next one, so the walk ends at the first place without a head.

A file ends at the offset that the header of the next file states. If the next file is missing or
damaged, a file ends at its last mark: later records may be the rest of an append that was given up.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.record import (
    HEAD_SIZE,
    HEADER_SIZE,
    MARK,
    Header,
    Place,
    head_of,
    size_of,
)
from giaann_p2p.store.disk.replay import read, read_header

_BLOCK = 1 << 12
"""The least number of bytes to read from a log file at once."""


class Found(NamedTuple):
    """A log record, as described by its head."""

    kind: int
    place: Place
    size: int
    """The size of the whole record in bytes, with its head and padding."""
    start: memoryview
    """The first bytes of the record's payload."""


def heads(files: Files, identity: bytes, number: int, most: int) -> Iterator[Found]:
    """Iterate over the records of an older log file, with at most `most` bytes of each payload.

    Damage ends the iteration without an error.
    """
    with contextlib.suppress(DamagedError, DiskError):
        header = read_header(files, identity, number)
        end = _end(files, identity, number)
        found = _walk(_Window(files, number), header, end, most)
        yield from (one for one in found if one.kind != MARK) if end else _marked(found)


def _end(files: Files, identity: bytes, number: int) -> int | None:
    try:
        return read_header(files, identity, number + 1).before
    except (DamagedError, DiskError):
        return None


def _walk(window: "_Window", header: Header, end: int | None, most: int) -> Iterator[Found]:
    at = HEADER_SIZE
    while head := head_of(window.read(at, HEAD_SIZE)):
        size = size_of(head.length)
        if end is not None and at + size > end:
            return
        start = window.read(at + HEAD_SIZE, min(head.length, most))
        if head.kind == MARK and not header.find(window.read(at, size), at, at):
            return
        yield Found(head.kind, Place(header.number, at), size, start)
        at += size


def _marked(found: Iterable[Found]) -> Iterator[Found]:
    """Iterate over the records before the last mark, without the marks."""
    waiting: list[Found] = []
    for one in found:
        if one.kind == MARK:
            yield from waiting
            waiting = []
        else:
            waiting.append(one)


class _Window:
    """Reads a log file block by block."""

    def __init__(self, files: Files, number: int) -> None:
        self._files, self._number = files, number
        self._block, self._start = memoryview(b""), 0

    def read(self, start: int, size: int) -> memoryview:
        """Return `size` bytes of the file from offset `start` on, or fewer at its end."""
        at = start - self._start
        if not 0 <= at <= at + size <= len(self._block):
            data = read(self._files, self._number, max(size, _BLOCK), start)
            self._block, self._start, at = memoryview(data), start, 0
        return self._block[at : at + size]
