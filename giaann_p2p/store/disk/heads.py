"""What stands in an old log file, told by the heads of its records: their payloads are not read.

Nothing vouches for a head but the record's checksum, which takes the payload: so what is found here
is where to look, and whoever looks there reads the whole record. The heads lead from one to the
next, so the first that is none ends the walk.

A file ends where the header of the file behind it says. If that one is gone, or damaged, it ends at
its last mark: what stands behind may be the rest of work that was given up.
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
"""Bytes that are read at once."""


class Found(NamedTuple):
    """A record, by its head."""

    kind: int
    place: Place
    size: int
    """Of the whole record."""
    start: memoryview
    """What its payload begins with."""


def heads(files: Files, identity: bytes, number: int, most: int) -> Iterator[Found]:
    """Iterate over the records of a file that is written to no more, with the first bytes of their
    payloads, `most` or all. Damage ends it, and is not told."""
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
    """Iterate over the records before the last mark."""
    waiting: list[Found] = []
    for one in found:
        if one.kind == MARK:
            yield from waiting
            waiting = []
        else:
            waiting.append(one)


class _Window:
    """A file that is read a block at a time."""

    def __init__(self, files: Files, number: int) -> None:
        self._files, self._number = files, number
        self._block, self._start = memoryview(b""), 0

    def read(self, start: int, size: int) -> memoryview:
        """Return so many bytes from an offset on, fewer where the file ends before."""
        at = start - self._start
        if not 0 <= at <= at + size <= len(self._block):
            data = read(self._files, self._number, max(size, _BLOCK), start)
            self._block, self._start, at = memoryview(data), start, 0
        return self._block[at : at + size]
