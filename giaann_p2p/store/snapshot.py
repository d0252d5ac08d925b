"""Snapshots: the whole state of a store in one file, which exists completely or not at all.

A snapshot has the format of a log file, and a temporary name until it is complete. It need not show
a single moment: each part holds some shards, with the chunks that they had applied when the part
was captured. Replaying the log from the file with the snapshot's number on skips these chunks.
Shards that were dropped while the snapshot was written have no content in it, only in that log.
"""

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator

from giaann_p2p.errors import DamagedError, DiskError
from giaann_p2p.store.disk.files import Appender, Files
from giaann_p2p.store.disk.record import HEADER_SIZE, Header, Record, behind

_NAME = re.compile(r"snapshot-(\d{8,})")
_UNFINISHED = ".new"
_END = 254
"""The kind of a snapshot's last record; a file without this record was truncated."""


def name_of(number: int) -> str:
    """Return the file name of a snapshot."""
    return f"snapshot-{number:08d}"


def newest(files: Files) -> int | None:
    """Return the number of the newest complete snapshot; None if there is no snapshot.

    It is also the number of the first log file to replay.
    """
    return max(_numbers(files), default=None)


def size(files: Files) -> int:
    """Return the size of the newest complete snapshot in bytes; 0 if there is no snapshot."""
    number = newest(files)
    return 0 if number is None else files.size(name_of(number))


def write(files: Files, identity: bytes, number: int, records: Iterable[tuple[int, bytes]]) -> int:
    """Write a snapshot, and return its size in bytes.

    DiskError if the disk fails; no part of the file is left then.
    """
    unfinished = name_of(number) + _UNFINISHED
    try:
        _remove(files, [unfinished])
        file = files.create(unfinished)
        try:
            _write_all(file, Header(_identity(identity), number, 0), records)
        finally:
            file.close()
        files.rename(unfinished, name_of(number))
        files.sync()
        return files.size(name_of(number))
    except BaseException as error:
        with contextlib.suppress(OSError):  # retried by the next snapshot, or the next opening
            _remove(files, [unfinished])
        if not isinstance(error, OSError):
            raise
        raise DiskError(f"{files.path(unfinished)}: {error.strerror}; the log is kept") from None


def read(files: Files, identity: bytes, number: int) -> Iterator[Record]:
    """Iterate over the records of a snapshot; DamagedError at the first damaged place."""
    name = name_of(number)
    try:
        data = files.read(name)
    except OSError as error:
        raise DiskError(f"{files.path(name)}: {error.strerror}") from None
    header = _header(files, name, data, Header(_identity(identity), number, 0))
    at, ended = HEADER_SIZE, False
    for record in header.records(memoryview(data)):
        at, ended = behind(record), record.kind == _END
        if not ended:
            yield record
    if not ended or at != len(data):
        raise damaged(files, name, at, "the bytes there are not what was written")


def forget_before(files: Files, number: int) -> None:
    """Remove the snapshots with smaller numbers, and unfinished files.

    The name of the snapshot that replaces them is made durable first: an earlier sync of it may
    have failed.
    """
    try:
        older = [name_of(old) for old in _numbers(files) if old < number]
        if older:
            files.sync()
        _remove(files, [*older, *(n for n in files.names() if n.endswith(_UNFINISHED))])
    except OSError as error:
        raise DiskError(f"{files.path('')}: {error.strerror}; old snapshots may remain") from None


def damaged(files: Files, name: str, offset: int, what: str) -> DamagedError:
    """Return the error for damage at an offset of a file; the caller raises it."""
    return DamagedError(f"{files.path(name)} is damaged at byte {offset:,}: {what}")


def _numbers(files: Files) -> list[int]:
    found = (_NAME.fullmatch(name) for name in files.names())
    return [int(match[1]) for match in found if match]


def _write_all(file: Appender, header: Header, records: Iterable[tuple[int, bytes]]) -> None:
    file.write(header.packed())
    for kind, payload in records:
        file.write(*header.record(kind, payload, file.size))
    file.write(*header.record(_END, b"", file.size))
    file.sync()


def _header(files: Files, name: str, data: bytes, wanted: Header) -> Header:
    try:
        header = Header.unpacked(data[:HEADER_SIZE])
    except ValueError as error:
        raise damaged(files, name, 0, str(error)) from None
    if header != wanted:
        raise damaged(files, name, 0, "it belongs to another store or was renamed")
    return header


def _identity(store: bytes) -> bytes:
    """Return the identity of a store's snapshots.

    It differs from that of the log, so no log record is valid inside a snapshot.
    """
    return hashlib.blake2b(b"snapshot\0" + store, digest_size=16).digest()


def _remove(files: Files, names: Iterable[str]) -> None:
    there = set(files.names())
    for name in names:
        if name in there:
            files.remove(name)
