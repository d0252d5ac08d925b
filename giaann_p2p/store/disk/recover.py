"""Taking up a log where it was left, by whatever: closed, killed, out of power or out of space.

A file is only gone on with if it ends in a mark. Otherwise what stands behind its last mark may be
in the system's memory alone, even after a sync, if one failed before that; so these records are
written anew into a new file, which says that the old one ends at that mark. Nothing of an old file
is ever changed. If the disk refuses, everything can be read all the same, and the next append tries
it again; until then, unacknowledged records may come and go.
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
    """Return the log and its records from file `first` on; make a log where there is none.

    `exists` says that there has to be one, which is also known where `first` came from a `roll`:
    then DamagedError if it is gone. The iterator may raise DamagedError, too; read it
    to the end before anything is forgotten.
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
            files.sync()  # the crash may have come between the newest file's name and this
            log.go_on(Tip(newest, files.reopen(file_name(newest.number)), ends.marked))
    with contextlib.suppress(DiskError):
        log.ready()
    older = itertools.chain.from_iterable(records(files, file) for file in found[:-1])
    return log, itertools.chain(older, whole_records(files, newest, data, ends.end))


def _unmarked(newest: Header, data: bytes, ends: Tail) -> list[Record]:
    """Return the records behind the last mark."""
    found = newest.records(memoryview(data)[: ends.end], ends.behind_mark)
    return [record for record in found if record.kind != MARK]


def _sizes(files: Files, found: list[LogFile]) -> dict[int, int]:
    numbers = [file.header.number for file in found]
    try:
        return {number: files.size(file_name(number)) for number in numbers}
    except OSError as error:
        raise DiskError(f"{files.path('')}: {error.strerror}") from None
