"""The journal of a store: its log, its snapshots, and the lock that all writes take.

A write is logged, then applied. If a logged write cannot be applied, memory lags behind the log.
The journal is then sealed: it refuses further writes, and makes no snapshot of that memory. A store
in memory has a journal without files, which only orders the writes.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from giaann_p2p.errors import DiskError, StoreError, UsageError
from giaann_p2p.store import snapshot
from giaann_p2p.store.disk.record import Place
from giaann_p2p.store.disk.replay import file_numbers
from giaann_p2p.store.layout import Shards
from giaann_p2p.store.opening import Disk
from giaann_p2p.store.records import (
    Kind,
    content_records,
    double_record,
    note_record,
    shards_record,
)
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.undisturbed import undisturbed

_LEAST_LOG = 8 << 20
_LOG_TO_SNAPSHOT = 2
"""A snapshot is due once the log exceeds both `_LEAST_LOG` bytes and this multiple of the last
snapshot's size. A store with a short log opens faster, because replaying an update takes a
millisecond, however little it adds."""


class Journal:
    """Makes the writes of one store durable, in the order in which they are applied."""

    def __init__(
        self, state: StoreState, disk: Disk | None, sealed: str, clock: Callable[[], float]
    ) -> None:
        self.lock = threading.Lock()
        """The store's write lock: held by each write, and by each read that must not see half of a
        write."""
        self._state, self._disk, self._clock = state, disk, clock
        self._sealed = sealed  # the reason why writes are refused; empty if they are accepted
        self.snapshotting = threading.RLock()
        """Held while a snapshot is written, and taken before `lock`. A doubling takes it, too, so
        that a snapshot has the shards of one layout only."""
        self._no_snapshots = False
        self._snapshot_size = snapshot.size(disk.files) if disk else 0
        self._first = (disk and snapshot.newest(disk.files)) or 1  # first log file to replay
        numbers = file_numbers(disk.files) if disk else []
        self._old = {number for number in numbers if number < self._first}  # files before that

    def __repr__(self) -> str:
        where = self._disk.files.path("") if self._disk else "memory"
        return f"<Journal in {where}{': ' if self._sealed else ''}{self._sealed}>"

    def close(self) -> None:
        """Refuse further writes, and close the log; a snapshot in progress is aborted."""
        self._sealed = self._sealed or "this store is closed"
        with self.snapshotting, self.lock:
            if self._disk:
                self._disk.log.close()

    def check(self) -> None:
        """Raise UsageError if writes are refused; each write calls this once it holds the lock.

        This class has no context manager that takes the lock and then checks: if Ctrl-C came after
        it took the lock, but before the caller's block began, the lock would never be released.
        """
        if self._sealed:
            raise UsageError(self._sealed)

    @contextmanager
    def logged(self, records: Sequence[tuple[int, bytes]]) -> Iterator[Sequence[Place | None]]:
        """Log records, then let the caller's block apply them; yields the place of each record.

        If the block fails, the journal is sealed, because memory lags behind the log.
        """
        with undisturbed():
            places: Sequence[Place | None] = [None] * len(records)
            if self._disk:
                places = self._disk.log.append(records, self._clock())
                self._state.archive.move(self._disk.log.moves())
            try:
                yield places
            except BaseException as error:
                self._sealed = f"memory lags behind the log ({error!r}); open the store again"
                raise

    def sync(self) -> None:
        """Sync the log: return once every acknowledged write is on the disk."""
        with self.lock:
            self.check()
            if self._disk:
                self._disk.log.sync()

    @property
    def snapshot_due(self) -> bool:
        """Whether the log is so long that a snapshot should replace it."""
        if self._disk is None:
            return False
        return self._disk.log.size > max(_LEAST_LOG, _LOG_TO_SNAPSHOT * self._snapshot_size)

    def end_snapshots(self) -> None:
        """Abort a snapshot in progress after its current part, and refuse to write further ones."""
        self._no_snapshots = True

    def snapshot(self) -> None:
        """Write a snapshot, then delete the log files that it replaces.

        Other threads may write to the store meanwhile. StoreError after `end_snapshots`.
        """
        if self._disk is None:
            return
        files, log = self._disk.files, self._disk.log
        with self.snapshotting:
            with self.lock, undisturbed():
                self._check_snapshots()
                self.check()
                number = log.roll()
                self._state.archive.move(log.moves())
                # Copied now, so that they are those at the start of the new log file.
                notes, shards = dict(self._state.notes), self._state.shards
                self._state.unbroken = set(shards.tolist())
            records = self._records(notes, shards)
            self._snapshot_size = snapshot.write(files, self._disk.identity, number, records)
            with self.lock:
                self._first = number
                self._forget()
            snapshot.forget_before(files, number)

    def forget_released(self) -> None:
        """Delete the old log files that no archived record needs; the caller holds the lock."""
        if not self._old <= self._state.archive.files:
            with suppress(DiskError):  # retried by the next release, or snapshot
                self._forget()

    def _records(self, notes: dict[str, bytes], shards: Shards) -> Iterator[tuple[int, bytes]]:
        """Yield a snapshot's records; `notes` and `shards` are those at the start of the new log.

        A shard's set of chunks only grows until the shard is dropped, so records of the log that
        are older than its content here have no effect. If it is dropped meanwhile, even if it is
        held again, its content stays out: it might have a chunk's delta from another owner, which
        an older withdrawal in the log does not fit. The log alone rebuilds such a shard.
        """
        layout = self._state.columns.layout
        if layout.doublings:
            yield Kind.DOUBLE, double_record(layout.shards)
        yield Kind.HOLD, shards_record(shards.tolist())
        for key, value in notes.items():
            yield Kind.NOTE, note_record(key, value)
        for part in self._state.parts(shards):
            with self.lock:
                self._check_snapshots()
                self.check()  # once the journal is sealed, memory may lag behind the log
                captured = self._state.capture(self._state.unbroken.intersection(part))
            for record in content_records(self._state.content(captured), layout):
                yield Kind.CONTENT, record
        self.sync()  # else a power cut might undo a drop whose shard's content stayed out

    def _check_snapshots(self) -> None:
        if self._no_snapshots:
            raise StoreError("no snapshot is written, because the store is about to be closed")

    def _forget(self) -> None:
        """Delete the log files that the snapshot replaces, except those the archive needs."""
        if self._disk:
            kept = self._state.archive.files
            self._disk.log.forget_before(self._first, kept)
            self._old = {number for number in kept if number < self._first}
