"""Reads a log: every acknowledged record, in order, or DamagedError with the place of the damage.

What a log file may hold, and what that means:

- A file gets its name when its header and its first mark are on the disk. So a file that lacks
  either is damaged; no crash can cause that.
- A file that has a successor ends at the offset that the successor's header states. Up to there,
  every byte was on the disk before the successor was made, so anything invalid is damage. Bytes
  after that offset are the rest of an append that was given up, and are ignored.
- The newest file ends at the first place without a whole record. If there is a mark anywhere after
  that place, the place is damaged, because a mark states that everything before it was on the disk.
  Otherwise the place is the torn end of the last write, which was never known to be durable.

So damage to acknowledged records is always detected, with one exception: if the last mark is gone,
too, damage after the second last mark looks like a torn end. The last mark may be gone because the
newest file was truncated or lost its name, or because the power failed before the mark was on the
disk.

Reading changes no file, and a writer may be active: the reader sees the records up to some moment.
If the writer meanwhile forgets files that the reader needs, the reader gets the error that one is
missing, and must start over from the newer snapshot.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.record import HEADER_SIZE, MARK, Header, Place, Record, behind

_NAME = re.compile(r"log-(\d{8}|[1-9]\d{8,})")


class LogFile(NamedTuple):
    """One file of a log: its header, and where it ends."""

    header: Header
    end: int | None
    """The offset at which the file ends; None for the newest file, whose end must be searched."""


class Tail(NamedTuple):
    """The end of the newest file of a log, as offsets.

    Invariant: marked < behind_mark <= end.
    """

    marked: int
    """The start of the last mark: everything before it is on the disk."""
    behind_mark: int
    """The end of the last mark."""
    end: int
    """The end of the last whole record in the file."""


def file_name(number: int) -> str:
    """Return the name of the log file with this number."""
    return f"log-{number:08d}"


def file_numbers(files: Files) -> list[int]:
    """Return the numbers of all log files, in order."""
    try:
        found = [_NAME.fullmatch(name) for name in files.names()]
    except OSError as error:
        raise DiskError(f"{files.path('')}: {error.strerror}") from None
    return sorted(int(match[1]) for match in found if match)


def replay(files: Files, identity: bytes, first: int = 1) -> Iterator[Record]:
    """Iterate over a log's records from file `first` on; their payloads are views, not copies."""
    for file in log_files(files, identity, first):
        yield from records(files, file)


def log_files(files: Files, identity: bytes, first: int) -> list[LogFile]:
    """Return the log files from `first` on; DamagedError unless all exist with valid headers."""
    numbers = [number for number in file_numbers(files) if number >= first]
    for expected, number in enumerate(numbers, first):
        if number != expected:
            raise missing(files, expected)
    headers = [read_header(files, identity, number) for number in numbers]
    ends = [header.before for header in headers[1:]]
    return [LogFile(*pair) for pair in zip(headers, [*ends, None], strict=False)]


def read_header(files: Files, identity: bytes, number: int) -> Header:
    """Read a log file's header; DamagedError if it is invalid, or another store's or file's."""
    data = read(files, number, HEADER_SIZE)
    try:
        return checked_header(data, identity, number)
    except ValueError as error:
        raise damaged(files, number, 0, str(error)) from None


def checked_header(data: bytes, identity: bytes, number: int) -> Header:
    """Decode a log file's header; ValueError if it is invalid, or another store's or file's."""
    header = Header.unpacked(data)
    if header.identity != identity:
        raise ValueError("it belongs to another store")
    if header.number != number:
        raise ValueError(f"it is log file {header.number}, renamed")
    return header


def records(files: Files, file: LogFile) -> Iterator[Record]:
    """Iterate over the records of one log file; DamagedError at the first damaged place."""
    data = read(files, file.header.number)
    end = tail(files, file.header, data).end if file.end is None else file.end
    yield from whole_records(files, file.header, data, end)


def whole_records(files: Files, header: Header, data: bytes, end: int) -> Iterator[Record]:
    """Iterate over a log file's records; DamagedError unless they are whole up to `end`."""
    at = HEADER_SIZE
    for record in header.records(memoryview(data)[:end]):
        at = behind(record)
        if record.kind != MARK:
            yield record
    if at != end:
        raise damaged(files, header.number, at, "the bytes there are not what was written")


def tail(files: Files, header: Header, data: bytes) -> Tail:
    """Return where the newest log file ends; DamagedError if a mark follows an invalid record."""
    marked, end = None, HEADER_SIZE
    for record in header.records(memoryview(data)):
        end = behind(record)
        if record.kind == MARK:
            marked = record.place.offset, end
    if header.next_mark(data, end + 1):
        raise damaged(files, header.number, end, "the bytes there are not what was written")
    if marked is None:
        raise damaged(files, header.number, end, "the file is cut off there")
    return Tail(*marked, end)


def record_at(files: Files, identity: bytes, place: Place, size: int) -> Record:
    """Read the log record of `size` bytes at a place; DamagedError if it is not there."""
    data = memoryview(read(files, place.file, size, place.offset))
    record = Header(identity, place.file, 0).find(data, place.offset, place.offset)
    if record is None or behind(record) != place.offset + size:
        raise damaged(files, *place, "the bytes there are not what was written")
    return record


def read(files: Files, number: int, size: int = -1, start: int = 0) -> bytes:
    """Read a log file, or at most `size` bytes of it, from offset `start` on."""
    try:
        return files.read(file_name(number), size, start)
    except FileNotFoundError:
        raise missing(files, number) from None
    except OSError as error:
        raise DiskError(f"{files.path(file_name(number))}: {error.strerror}") from None


def damaged(files: Files, number: int, offset: int, what: str) -> DamagedError:
    """Return the error for damage at an offset of a log file; the caller raises it."""
    return DamagedError(f"{files.path(file_name(number))} is damaged at byte {offset:,}: {what}")


def missing(files: Files, number: int) -> DamagedError:
    """Return the error for a missing log file; the caller raises it."""
    return damaged(files, number, 0, "the file is missing")
