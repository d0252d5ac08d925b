"""Reopens a log, however it was left: closed, killed, out of power or out of space.

The log continues in the newest file only if that file ends in a mark. Otherwise the records after
the last mark may exist only in the system's memory: if an earlier sync failed, even a later sync
does not help. So these records are rewritten into a new file, whose header says that the old file
ends at the mark. An old file is never changed. If the disk refuses, all records can still be read,
and the next append retries; until then, unacknowledged records may appear and disappear.
"""

import contextlib
import itertools
from collections.abc import Iterator

from giaann_p2p.errors import DiskError
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.record import MARK, Header, Record
from giaann_p2p.store.disk.replay import (
    LogFile,
    Tail,
    file_name,
    log_files,
    missing,
    read,
    records,
    tail,
    whole_records,
)
from giaann_p2p.store.disk.sync import ALWAYS, Sync
from giaann_p2p.store.disk.tip import Tip


def recover(
    files: Files, identity: bytes, first: int = 1, sync: Sync = ALWAYS, exists: bool = False
) -> tuple[Log, Iterator[Record]]:
    """Reopen a log: return it, and its records from file `first` on; create it if there is none.

    DamagedError if there is no log although there must be one: because `exists` is true, or because
    a `first` above 1 is the result of a `roll`. The iterator of records may raise DamagedError,
    too; it must be read to the end before any file is forgotten.
    """
    found = log_files(files, identity, first)
    if found:
        return _taken_up(files, found, sync)
    if exists or first > 1:
        raise missing(files, first)
    log = Log(files, identity, sync, {})
    log.roll()
    return log, iter(())


def _taken_up(files: Files, found: list[LogFile], sync: Sync) -> tuple[Log, Iterator[Record]]:
    newest = found[-1].header
    data = read(files, newest.number)
    ends = tail(files, newest, data)
    again = _unmarked(newest, data, ends)
    log = Log(files, newest.identity, sync, _sizes(files, found), ends.marked, again)
    if ends.behind_mark == len(data):
        with contextlib.suppress(OSError):
            files.sync()  # the crash may have come before the newest file's name was synced
            log.go_on(Tip(newest, files.reopen(file_name(newest.number)), ends.marked))
    with contextlib.suppress(DiskError):
        log.ready()
    older = itertools.chain.from_iterable(records(files, file) for file in found[:-1])
    return log, itertools.chain(older, whole_records(files, newest, data, ends.end))


def _unmarked(newest: Header, data: bytes, ends: Tail) -> list[Record]:
    """Return the records of the newest file after its last mark."""
    found = newest.records(memoryview(data)[: ends.end], ends.behind_mark)
    return [record for record in found if record.kind != MARK]


def _sizes(files: Files, found: list[LogFile]) -> dict[int, int]:
    numbers = [file.header.number for file in found]
    try:
        return {number: files.size(file_name(number)) for number in numbers}
    except OSError as error:
        raise DiskError(f"{files.path('')}: {error.strerror}") from None
