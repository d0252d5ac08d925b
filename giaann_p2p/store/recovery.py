"""From files back to memory: the newest snapshot, then what the log holds behind it."""

import contextlib
from collections.abc import Iterable

from giaann_p2p.errors import DamagedError, DiskError, UsageError
from giaann_p2p.store import snapshot
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.record import Record
from giaann_p2p.store.disk.recover import recover
from giaann_p2p.store.disk.replay import file_name, file_numbers, missing, replay
from giaann_p2p.store.disk.sync import Sync
from giaann_p2p.store.home import Deed
from giaann_p2p.store.state import State


def recovered(files: Files, deed: Deed, sync: Sync) -> tuple[State, Log]:
    """Return what the files hold, and the log to go on with."""
    state, first = _restored(files, deed)
    log, records = recover(files, deed.identity, first, sync, exists=True)
    _replay(state, records, files)
    with contextlib.suppress(DiskError):  # the next opening, or snapshot, does it
        if first > 1:  # a crash may have come before these were forgotten
            log.forget_before(first)
        snapshot.forget_before(files, first)
    return state, log


def seen(files: Files, deed: Deed) -> State:
    """Return what the files hold, while somebody may be writing to them; change nothing."""
    while True:
        newest = snapshot.newest(files)
        try:
            state, first = _restored(files, deed)
            if max(file_numbers(files), default=0) < first:
                raise missing(files, first)
            _replay(state, replay(files, deed.identity, first), files)
        except (DamagedError, DiskError):  # perhaps of files that were forgotten meanwhile
            if snapshot.newest(files) == newest:
                raise
        else:
            return state


def _restored(files: Files, deed: Deed) -> tuple[State, int]:
    """Return what the newest snapshot holds, and the number of the log file behind it."""
    state, number = State(deed.spec, deed.layout), snapshot.newest(files)
    if number is None:
        return state, 1
    records = snapshot.read(files, deed.identity, number)
    _replay(state, records, files, snapshot.name_of(number))
    state.columns.merge_all()
    return state, number


def _replay(state: State, records: Iterable[Record], files: Files, name: str = "") -> None:
    for record in records:
        try:
            state.replay(record.kind, record.payload)
        except (DamagedError, UsageError) as error:
            where = files.path(name or file_name(record.place.file))
            raise DamagedError(
                f"{where} is damaged at byte {record.place.offset:,}: {error}"
            ) from None
