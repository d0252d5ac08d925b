"""Reading a log: every record that was acknowledged, in order, or a refusal that says where.

What a log file may hold, and what that means:

- A file gets its name when its header and its first mark are on the disk. So a file that is short
  of these is damaged, however a crash may have come.
- A file that has a successor ends where the successor's header says. Up to there every byte was on
  the disk before the successor was made: anything wrong is damage. What lies behind is the rest of
  work that was given up, and is never looked at.
- The newest file ends at the first place where no whole record stands. If there is a mark anywhere
  behind that place, it is damage: the mark says that all before it was on the disk. If there is
  none, nothing from there on was ever vouched for; it is the torn end of the last write.

So damage to what was acknowledged is always told, but for one case: if the last mark is gone, too
(the newest file was cut or lost its name, or the power went before that mark was on the disk), then
damage behind the mark before it looks like a torn end.

Nothing here changes a file, and a writer may be at work: a reader sees the records up to some
moment. If the files that it is about to read are forgotten meanwhile, it is told that one is
missing, and has to start over from the newer snapshot.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.record import HEADER_SIZE, MARK, Header, Place, Record, behind

_NAME = re.compile(r"log-(\d{8}|[1-9]\d{8,})")


class LogFile(NamedTuple):
    """One file of a log."""

    header: Header
    end: int | None
    """Where it ends; None for the newest, which has to be read for that."""


class Tail(NamedTuple):
    """How the newest file of a log ends."""

    marked: int
    """Where the last mark stands: everything before it is on the disk."""
    behind_mark: int
    """Where that mark ends."""
    end: int
    """Where the last whole record ends."""


def file_name(number: int) -> str:
    """Return the name of a log file."""
    return f"log-{number:08d}"


def file_numbers(files: Files) -> list[int]:
    """Return the numbers of all log files, in order."""
    try:
        found = [_NAME.fullmatch(name) for name in files.names()]
    except OSError as error:
        raise DiskError(f"{files.path('')}: {error.strerror}") from None
    return sorted(int(match[1]) for match in found if match)


def replay(files: Files, identity: bytes, first: int = 1) -> Iterator[Record]:
    """Iterate over the records from a file on. Payloads are views of what was read, not copies."""
    for file in log_files(files, identity, first):
        yield from records(files, file)


def log_files(files: Files, identity: bytes, first: int) -> list[LogFile]:
    """Return the files from a number on; DamagedError unless each is there and has its header."""
    numbers = [number for number in file_numbers(files) if number >= first]
    for expected, number in enumerate(numbers, first):
        if number != expected:
            raise missing(files, expected)
    headers = [read_header(files, identity, number) for number in numbers]
    ends = [header.before for header in headers[1:]]
    return [LogFile(*pair) for pair in zip(headers, [*ends, None], strict=False)]


def read_header(files: Files, identity: bytes, number: int) -> Header:
    """Read the header of a file; DamagedError if it is not the one that the file should have."""
    data = read(files, number, HEADER_SIZE)
    try:
        return checked_header(data, identity, number)
    except ValueError as error:
        raise damaged(files, number, 0, str(error)) from None


def checked_header(data: bytes, identity: bytes, number: int) -> Header:
    """Return the header that a file begins with; ValueError if it is not what it should be."""
    header = Header.unpacked(data)
    if header.identity != identity:
        raise ValueError("it belongs to another store")
    if header.number != number:
        raise ValueError(f"it is file {header.number}")
    return header


def records(files: Files, file: LogFile) -> Iterator[Record]:
    """Iterate over the records of one file; DamagedError at the first damage."""
    data = read(files, file.header.number)
    end = tail(files, file.header, data).end if file.end is None else file.end
    yield from whole_records(files, file.header, data, end)


def whole_records(files: Files, header: Header, data: bytes, end: int) -> Iterator[Record]:
    """Iterate over a file's records, which have to be whole up to an end."""
    at = HEADER_SIZE
    for record in header.records(memoryview(data)[:end]):
        at = behind(record)
        if record.kind != MARK:
            yield record
    if at != end:
        raise damaged(files, header.number, at, "what stands there is not what was written")


def tail(files: Files, header: Header, data: bytes) -> Tail:
    """Return how the newest file ends; DamagedError if a mark vouches for what is not there."""
    marked, end = None, HEADER_SIZE
    for record in header.records(memoryview(data)):
        end = behind(record)
        if record.kind == MARK:
            marked = record.place.offset, end
    if header.next_record(data, end + 1, MARK):
        raise damaged(files, header.number, end, "what stands there is not what was written")
    if marked is None:
        raise damaged(files, header.number, end, "the file is cut off there")
    return Tail(*marked, end)


def record_at(files: Files, identity: bytes, place: Place, size: int) -> Record:
    """Read the one record of some size that stands at a place; DamagedError if none does."""
    data = memoryview(read(files, place.file, size, place.offset))
    record = Header(identity, place.file, 0).find(data, place.offset, place.offset)
    if record is None or behind(record) != place.offset + size:
        raise damaged(files, *place, "what stands there is not what was written")
    return record


def read(files: Files, number: int, size: int = -1, start: int = 0) -> bytes:
    """Read a log file, or only so many bytes from an offset on."""
    try:
        return files.read(file_name(number), size, start)
    except FileNotFoundError:
        raise missing(files, number) from None
    except OSError as error:
        raise DiskError(f"{files.path(file_name(number))}: {error.strerror}") from None


def damaged(files: Files, number: int, offset: int, what: str) -> DamagedError:
    """Return the error to raise."""
    return DamagedError(f"{files.path(file_name(number))} is damaged at byte {offset:,}: {what}")


def missing(files: Files, number: int) -> DamagedError:
    """Return the error to raise."""
    return damaged(files, number, 0, "the file is missing")
