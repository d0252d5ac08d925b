"""From files back to memory: the newest snapshot, then what the log holds behind it."""

import contextlib
from collections.abc import Iterable

from giaann_p2p.errors import DamagedError, DiskError, UsageError
from giaann_p2p.store import snapshot
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.heads import heads
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.record import Record
from giaann_p2p.store.disk.recover import recover
from giaann_p2p.store.disk.replay import file_name, file_numbers, missing, record_at, replay
from giaann_p2p.store.disk.sync import Sync
from giaann_p2p.store.home import Deed
from giaann_p2p.store.kept import Kept, kept_of
from giaann_p2p.store.records import Kind, released, shards_of
from giaann_p2p.store.spare import Spare
from giaann_p2p.store.state import State
from giaann_p2p.store.update import head_size, update_head


def recovered(
    files: Files, deed: Deed, sync: Sync, retain: bool, spare: int = 0
) -> tuple[State, Log]:
    """Return what the files hold, with or without an archive, and the log to go on with."""
    state, first = _restored(files, deed)
    state.archive.spare = Spare(spare)
    log, records = recover(files, deed.identity, first, sync, exists=True)
    if retain:
        _look_through(state, files, deed, first)
    _replay(state, records, files, retain=retain)
    state.archive.move(log.moves())
    state.archive.keep_only(state.ledger)
    with contextlib.suppress(DiskError):  # the next opening, or snapshot, does it
        if first > 1 and not retain:  # a crash may have come before these were forgotten
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


def _look_through(state: State, files: Files, deed: Deed, first: int) -> None:
    """Find the deltas in the log files before the newest snapshot; what is damaged is left out."""
    most = head_size(deed.layout.shards)
    for number in file_numbers(files):
        if number < first:
            with contextlib.suppress(DamagedError, DiskError):
                for found in heads(files, deed.identity, number, most):
                    if found.kind == Kind.UPDATE:
                        head = update_head(found.start)
                        state.archive.add(Kept(*head, found.size, found.place))
                    elif found.kind in (Kind.DROP, Kind.RELEASE):
                        record = record_at(files, deed.identity, found.place, found.size)
                        if found.kind == Kind.DROP:
                            state.archive.drop(shards_of(record.payload))
                        else:
                            state.archive.release(*released(record.payload))


def _replay(
    state: State, records: Iterable[Record], files: Files, name: str = "", retain: bool = False
) -> None:
    for record in records:
        try:
            state.replay(record.kind, record.payload)
            if retain and record.kind == Kind.UPDATE:
                state.archive.add(kept_of(record.payload, record.place))
        except (DamagedError, UsageError) as error:
            where = files.path(name or file_name(record.place.file))
            raise DamagedError(
                f"{where} is damaged at byte {record.place.offset:,}: {error}"
            ) from None
