"""Finds all damage in a log; a replay stops at the first.

`replay` documents what counts as damage.
"""

from collections.abc import Iterator
from typing import NamedTuple

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.record import HEADER_SIZE, MARK, Header, behind
from giaann_p2p.store.disk.replay import checked_header, file_name, file_numbers, read


class Problem(NamedTuple):
    """A damaged part of a file: its content is not what was written."""

    file: str
    offset: int
    what: str


def verify(files: Files, identity: bytes, first: int = 1) -> Iterator[Problem]:
    """Iterate over the problems of all log files; from `first` on, none may be missing."""
    numbers = file_numbers(files)
    newest = max(numbers, default=first)
    end = None  # a file's end is in the next one's header, so the newest file comes first
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
        header = Header(identity, number, 0)  # records depend on these two fields only
        for offset, what in _damage(header, data, end):
            yield Problem(name, offset, what)
        try:
            end = checked_header(data, identity, number).before
        except ValueError as error:
            yield Problem(name, 0, str(error))
            end = None


def _damage(header: Header, data: bytes, end: int | None) -> Iterator[tuple[int, str]]:
    """Iterate over the ranges of a file without a valid record, up to its end."""
    at, end = HEADER_SIZE, end or _vouched(header, data)
    if not end:
        yield min(at, len(data)), "no mark is left of the file"
        return
    while at < end:
        if found := header.find(memoryview(data), at):
            at = behind(found)
            continue
        start, found = at, header.next_record(data, at + 1)
        at = min(found.place.offset if found else end, end)
        yield start, f"{at - start:,} bytes are not what was written"


def _vouched(header: Header, data: bytes) -> int:
    """Return the end of the last mark, even after damage; 0 if there is none."""
    end = 0
    while mark := header.next_record(data, max(end, HEADER_SIZE), MARK):
        end = behind(mark)
    return end
