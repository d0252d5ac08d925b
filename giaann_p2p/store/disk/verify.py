"""Finds all damage in a log, whereas a replay stops at the first damaged place.

The module `replay` describes what counts as damage.
"""

from collections.abc import Iterator
from typing import NamedTuple

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.record import HEADER_SIZE, Header, behind
from giaann_p2p.store.disk.replay import checked_header, file_name, file_numbers, read


class Problem(NamedTuple):
    """A damaged part of a log file, whose content is not what was written."""

    file: str
    offset: int
    what: str


def verify(files: Files, identity: bytes, first: int = 1) -> Iterator[Problem]:
    """Iterate over the problems of all log files; a missing file from `first` on is a problem.

    A missing file before `first` is none: archived files are removed once their deltas are
    released, and nothing records when.
    """
    numbers = file_numbers(files)
    newest = max(numbers, default=first)
    end = None  # the next file's header states where a file ends, so start with the newest file
    for number in range(newest, min([first, *numbers]) - 1, -1):
        name = file_name(number)
        try:
            data = read(files, number)
        except (DiskError, DamagedError) as error:
            missing = isinstance(error, DamagedError)
            if number >= first or not missing:
                yield Problem(name, 0, "the file is missing" if missing else "it cannot be read")
            end = None
            continue
        header = Header(identity, number, 0)  # checksums of records do not depend on `before`
        for offset, what in _damage(header, data, end):
            yield Problem(name, offset, what)
        try:
            end = checked_header(data, identity, number).before
        except ValueError as error:
            yield Problem(name, 0, str(error))
            end = None


def _damage(header: Header, data: bytes, end: int | None) -> Iterator[tuple[int, str]]:
    """Iterate over the ranges of a log file, up to its end, that hold no valid record."""
    at, end = HEADER_SIZE, end or _vouched(header, data)
    if not end:
        yield min(at, len(data)), "the file has no valid mark"
        return
    while at < end:
        if found := header.find(memoryview(data), at):
            at = behind(found)
            continue
        start, found = at, header.next_record(data, at + 1)
        at = min(found.place.offset if found else end, end)
        yield start, f"{at - start:,} bytes are not what was written"


def _vouched(header: Header, data: bytes) -> int:
    """Return the end of a file's last mark, even if there is damage before it; 0 without a mark."""
    end = 0
    while mark := header.next_mark(data, max(end, HEADER_SIZE)):
        end = behind(mark)
    return end
