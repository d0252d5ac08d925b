"""Rebuilds a store's state from its files: the newest snapshot, then a replay of the log."""

import contextlib
from collections.abc import Iterable

import numpy as np

from giaann_p2p.errors import DamagedError, DiskError, UsageError
from giaann_p2p.store import snapshot
from giaann_p2p.store.archive import Archive
from giaann_p2p.store.disk.files import Files
from giaann_p2p.store.disk.heads import heads
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.record import Record
from giaann_p2p.store.disk.recover import recover
from giaann_p2p.store.disk.replay import file_name, file_numbers, missing, record_at, replay
from giaann_p2p.store.disk.sync import Sync
from giaann_p2p.store.home import StoreParameters
from giaann_p2p.store.kept import Kept, kept_of
from giaann_p2p.store.layout import Layout
from giaann_p2p.store.records import Kind, doubled_to, released, shards_of
from giaann_p2p.store.spare import Spare
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.update import doublings_of, head_size, update_head


def recovered(
    files: Files, parameters: StoreParameters, sync: Sync, retain: bool, spare: int = 0
) -> tuple[StoreState, Log]:
    """Return the state that a store's files hold, and the log to append to.

    `retain`: also rebuild the archive of deltas. `spare`: the most bytes of released deltas that
    the archive caches.
    """
    state, first = _restored(files, parameters)
    state.archive.spare = Spare(spare)
    log, records = recover(files, parameters.identity, first, sync, exists=True)
    if retain:
        _look_through(state, files, parameters, first)
    _replay(state, records, files, retain=retain)
    state.archive.move(log.moves())
    state.archive.keep_only(state.ledger)
    with contextlib.suppress(DiskError):  # retried at the next opening, or snapshot
        if first > 1 and not retain:  # old files are left if a crash prevented their removal
            log.forget_before(first)
        snapshot.forget_before(files, first)
    return state, log


def seen(files: Files, parameters: StoreParameters) -> StoreState:
    """Return the state that a store's files hold, without changing them.

    A writer may be active: if it removes files that are needed, reading starts over.
    """
    while True:
        newest = snapshot.newest(files)
        try:
            state, first = _restored(files, parameters)
            if max(file_numbers(files), default=0) < first:
                raise missing(files, first)
            _replay(state, replay(files, parameters.identity, first), files)
        except (DamagedError, DiskError):  # perhaps the writer removed these files meanwhile
            if snapshot.newest(files) == newest:
                raise
        else:
            return state


def _restored(files: Files, parameters: StoreParameters) -> tuple[StoreState, int]:
    """Return the state in the newest snapshot, and the number of the first log file to replay.

    Without a snapshot, the state is empty and the number is 1.
    """
    state, number = StoreState(parameters.spec, parameters.layout), snapshot.newest(files)
    if number is None:
        return state, 1
    records = snapshot.read(files, parameters.identity, number)
    _replay(state, records, files, snapshot.name_of(number))
    state.columns.merge_all()
    return state, number


def _look_through(state: StoreState, files: Files, parameters: StoreParameters, first: int) -> None:
    """Index the deltas in log files older than the newest snapshot; skip what is damaged.

    Their shards are converted to the snapshot's layout. If there was a doubling, the layout is
    unknown after a gap between the files, until the next update states it. Until then, drops and
    releases are ignored: a delta that is kept for too long does no harm.
    """
    layout = state.columns.layout
    written: Layout | None = parameters.layout
    most, before = head_size(layout.shards), 0
    for number in file_numbers(files):
        if number > before + 1 and layout.doublings:
            written = None
        before = number
        if number < first:
            with contextlib.suppress(DamagedError, DiskError):
                for found in heads(files, parameters.identity, number, most):
                    if found.kind == Kind.UPDATE:
                        job, chunk, shards = update_head(found.start)
                        written = layout.doubled(doublings_of(found.start))
                        shards = written.cover(shards, layout)
                        state.archive.add(Kept(job, chunk, shards, found.size, found.place))
                    elif found.kind in (Kind.DROP, Kind.RELEASE, Kind.DOUBLE):
                        record = record_at(files, parameters.identity, found.place, found.size)
                        written = _apply_old(state.archive, record, written, layout)


def _apply_old(
    archive: Archive, record: Record, written: Layout | None, layout: Layout
) -> Layout | None:
    """Apply an old record other than an update to the archive; return the layout after it.

    `written`: the layout of the record's shards, or None if it is unknown. `layout`: the layout of
    the archive's shards.
    """
    if record.kind == Kind.DOUBLE:
        return layout.with_shards(doubled_to(record.payload))
    if written is None:
        return None
    if record.kind == Kind.DROP:
        dropped = np.array(sorted(shards_of(record.payload)), np.uint16)
        archive.drop(written.cover(dropped, layout).tolist())
    else:
        job, chunks, shards = released(record.payload)
        archive.release(job, chunks, written.cover(shards, layout))
    return written


def _replay(
    state: StoreState, records: Iterable[Record], files: Files, name: str = "", retain: bool = False
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
