"""The store: columns in memory, made durable by a write-ahead log and snapshots.

A write is logged, then applied, then acknowledged; a failure before it is logged leaves no trace.
After a crash the store has every acknowledged write, and perhaps some writes that were in progress,
but never a part of one. Reading rows takes no lock: any thread may read while another writes.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from pyroaring import BitMap

from giaann_p2p.errors import UsageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store import home
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.codec.parcel import encode
from giaann_p2p.store.cold import ColdRoom
from giaann_p2p.store.content import Content
from giaann_p2p.store.deltas import Deltas
from giaann_p2p.store.disk.files import DiskFiles, Files
from giaann_p2p.store.disk.sync import ALWAYS, Sync
from giaann_p2p.store.journal import Journal
from giaann_p2p.store.kept import KEPT_BYTES, Kept, kept_of
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.memory.heap import give_back
from giaann_p2p.store.opening import Disk, looked_at, opened
from giaann_p2p.store.reads import StoreReads
from giaann_p2p.store.records import (
    Kind,
    content_record,
    double_record,
    note_record,
    release_record,
    shards_record,
)
from giaann_p2p.store.state import StoreState
from giaann_p2p.store.undisturbed import undisturbed
from giaann_p2p.store.update import (
    Parcel,
    Update,
    cut,
    parcel_of,
    update_of,
    update_record,
)
from giaann_p2p.store.withdrawal_split import UpdatePart, as_it_came, by_update, released_at_once


class Store(StoreReads):
    """A store of shards, in memory and perhaps on a disk; made by `in_memory`, `at` or `open`."""

    def __init__(
        self,
        state: StoreState,
        disk: Disk | None,
        budget: Budget,
        sealed: str = "",
        retain: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._journal = Journal(state, disk, sealed, clock)
        super().__init__(state, self._journal.lock)
        self._disk, self._budget = disk, budget
        files, identity = (disk.files, disk.identity) if disk else (None, b"")
        self.cold = ColdRoom(files, identity, state.limits, state.columns.layout)
        """Cold copies: files of shards that have left memory."""
        self.cold.tidy()
        self._retain = retain
        self._deltas = Deltas(state, disk)
        self._held = ExitStack()

    @classmethod
    def in_memory(
        cls,
        spec: ModelSpec,
        layout: Layout,
        budget: Budget | None = None,
        *,
        retain: bool = False,
    ) -> Self:
        """Make a store without files, whose content is lost when the process ends."""
        return cls(StoreState(spec, layout), None, budget or Budget(), retain=retain)

    @classmethod
    def at(
        cls,
        directory: Path,
        spec: ModelSpec | None = None,
        layout: Layout | None = None,
        *,
        readonly: bool = False,
        sync: Sync = ALWAYS,
        budget: Budget | None = None,
        retain: bool = False,
        spare: int = 0,
    ) -> Self:
        """Open the store in a directory, creating it if there is none, unless `readonly`.

        `retain`: keep the delta of each update until it is released; otherwise no delta is kept,
        and earlier ones are lost. `spare`: the most bytes of released deltas to cache.
        """
        files = DiskFiles(directory)
        if readonly:
            return cls.open(files, spec, layout, readonly=True, budget=budget)
        with ExitStack() as held:
            held.enter_context(home.locked(directory))
            store = cls.open(
                files, spec, layout, sync=sync, budget=budget, retain=retain, spare=spare
            )
            store._held = held.pop_all()
        return store

    @classmethod
    def open(
        cls,
        files: Files,
        spec: ModelSpec | None = None,
        layout: Layout | None = None,
        *,
        readonly: bool = False,
        sync: Sync = ALWAYS,
        budget: Budget | None = None,
        retain: bool = False,
        spare: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Open the store in the given files; the caller ensures that no other writer is active.

        Parameters are those of `at`. `clock` returns seconds, by which `sync` is timed.
        """
        if readonly:
            state = looked_at(files, spec, layout)
            return cls(state, None, budget or Budget(), "this store was opened for reading only")
        state, disk = opened(files, spec, layout, sync, retain, spare)
        return cls(state, disk, budget or Budget(), retain=retain, clock=clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = self._disk.files.path("") if self._disk else "memory"
        columns = self._state.columns
        return (
            f"<Store in {where}: {len(self.shards)} shards, {columns.connections:,} connections, "
            f"{self.nbytes:,} bytes>"
        )

    def close(self) -> None:
        """Close the log and unlock the directory; every acknowledged write stays."""
        try:
            self._journal.close()
        finally:
            self._held.close()

    def apply(self, updates: Sequence[Update]) -> list[Shards]:
        """Apply chunks or withdrawals durably; return, for each, the shards to which it was new.

        A withdrawal subtracts from each shard the delta that this shard got from the chunk,
        whichever peer sent it.
        """
        for update in updates:
            update.check(self.spec)
        parcels = [update.parcel or encode(update.delta) for update in updates]
        with self._journal.lock:
            self._journal.check()
            parts = [
                one
                for at, (update, parcel) in enumerate(zip(updates, parcels, strict=True))
                for one in as_it_came(
                    UpdatePart(at, update, parcel),
                    self._deltas.parcels_of,
                    self.limits,
                    self.layout,
                )
            ]
            planned = self._state.planned(one.update for one in parts)
            new = [(one, fresh) for one, fresh in zip(parts, planned, strict=True) if len(fresh)]
            records = [
                (Kind.UPDATE, update_record(one.update, fresh, one.parcel, self.layout))
                for one, fresh in new
            ]
            kept = sum(KEPT_BYTES + (0 if self._disk else len(r)) for _, r in records)
            mine = [one.update for one in parts]
            self._budget.admit(self._state, mine, planned, kept if self._retain else 0)
            with self._journal.logged([*records, *released_at_once(new)]) as places:
                for (one, fresh), (_, record), place in zip(new, records, places, strict=False):
                    self._state.add(one.update, fresh)
                    if self._retain and not one.is_own:
                        self._state.archive.add(kept_of(memoryview(record), place))
        return by_update(len(updates), parts, planned)

    def note(self, key: str, value: bytes) -> None:
        """Set the note of a key durably."""
        with self._journal.lock:
            self._journal.check()
            with self._journal.logged([(Kind.NOTE, note_record(key, value))]):
                self._state.notes[key] = value

    def hold(self, shards: Iterable[int]) -> None:
        """Hold further shards durably; they are empty. Shards already held stay unchanged."""
        with self._journal.lock:
            self._journal.check()
            new = [number for number in shards if number not in self._state.ledger]
            self._state.check_shards(new)
            if new:
                with self._journal.logged([(Kind.HOLD, shards_record(new))]):
                    self._state.hold(new)

    def drop(self, shards: Iterable[int]) -> None:
        """Stop holding shards, durably; their content is lost."""
        with self._journal.lock:
            self._journal.check()
            old = [number for number in shards if number in self._state.ledger]
            if old:
                with self._journal.logged([(Kind.DROP, shards_record(old))]):
                    self._state.drop(old)

    def double(self, shards: int) -> None:
        """Divide all shards durably, so that there are `shards` of them in the whole swarm.

        UsageError unless `shards` is a larger power of two; nothing changes if it is the present
        number. All parts of the held shards are then held, and have applied the same chunks. The
        call waits for a snapshot that is being written. Reads of rows continue; other calls wait.
        """
        with self._journal.lock:
            self._journal.check()
            if shards == self.layout.shards:
                return
            self._state.check_doubling(shards)
        for number in self.shards.tolist():  # merge most of it while other threads may write
            with self._journal.lock:
                self._state.capture([number])
        with self._journal.snapshotting, self._journal.lock:
            self._journal.check()
            if shards == self.layout.shards:
                return
            self._state.check_doubling(shards)
            with self._journal.logged([(Kind.DOUBLE, double_record(shards))]):
                self._state.double(shards)
                self.cold.double(self.layout)

    def cool(self, shard: int, now: float) -> None:
        """Write a cold copy of a shard's current content; the shard also stays in memory."""
        with self._journal.lock:
            captured, layout = self._state.capture([shard]), self.layout
        held = self._state.content(captured)
        if len(held.shards):
            self._journal.sync()  # else a power cut might undo the doubling that the copy assumes
            self.cold.put(held, now, layout)

    def thaw(self, shard: int) -> None:
        """Merge the content of a shard's cold copy into the store; the copy stays on the disk."""
        self.adopt(self.cold.content(shard))

    def adopt(self, *held: Content) -> None:
        """Merge the content of shards from elsewhere into the store durably: all of it, or nothing.

        Chunks that only the shard here has stay in it. UsageError if the two contents cannot be
        merged: they have some chunks in common, each has others, and the deltas that are missing
        elsewhere are not kept here. StoreError if the same chunks have another sum elsewhere.
        """
        shards = [shard for one in held for shard in one.shards.tolist()]
        if len(set(shards)) < len(shards):
            raise UsageError("each shard may be given only once")
        layout, ahead = self._recalled_for(held)
        with self._journal.lock:
            self._journal.check()
            if layout is not self.layout:
                ahead = {}  # these deltas are for shards that were divided meanwhile
            united = [
                self._state.united(one, lambda *of: ahead.get(of) or self._deltas.of(*of))
                for one in held
            ]
            new = [one for one in united if not self._state.is_known(one)]
            self._budget.admit_content(self._state, new)
            records = [(Kind.CONTENT, content_record(one)) for one in new]
            with self._journal.logged(records):
                for one in new:
                    self._state.adopt(one)

    def retained(self, job: bytes) -> BitMap:
        """Return the chunks of a job whose delta is retained for at least one shard."""
        with self._journal.lock:
            return self._state.archive.chunks(job)

    def kept(self) -> list[Kept]:
        """Return all archived records: the retained ones, and released ones still cached."""
        with self._journal.lock:
            return self._state.archive.everything

    def parcel(self, kept: Kept) -> Parcel | None:
        """Return an archived record as a parcel, cut to the shards held here.

        None if the record is for none of these shards, or cannot be read.
        """
        with self._journal.lock:
            return self._deltas.parcel(kept, self.shards)

    @property
    def unreadable(self) -> int:
        """The number of archived records that could not be read when they were requested."""
        return len(self._deltas.unreadable)

    @property
    def retains(self) -> bool:
        """Whether any delta is retained that is not released yet."""
        return self._state.archive.count > 0

    def retained_for(self, shard: int, jobs: Iterable[bytes] | None = None) -> Applied:
        """Return the chunks, of all jobs or of some, whose delta for one shard is retained."""
        with self._journal.lock:
            return self._state.archive.of(shard, jobs)

    def kept_for_all(self, shards: Shards, jobs: Iterable[bytes], cached: bool = False) -> Applied:
        """Return the chunks of some jobs whose delta for each of some shards is retained.

        `cached`: released deltas that are still cached count as well.
        """
        with self._journal.lock:
            return self._state.archive.of_all(shards, jobs, cached)

    def recall(self, job: bytes, chunk: int, shards: Iterable[int]) -> list[Update]:
        """Return a chunk's retained delta for those of the given shards for which it is retained.

        The result has one update for each record that has a part of the delta. DamagedError for a
        record that is not what was written; the record is then discarded, so the next call does
        not raise the error for it again.
        """
        found, layout = self._found(job, chunk, shards)
        updates = [(update_of(record, self.limits), asked) for asked, record in found]
        return [cut(update, asked, layout) for update, asked in updates]

    def parcels(self, job: bytes, chunk: int, shards: Iterable[int]) -> list[Parcel]:
        """Return a chunk's retained delta like `recall`, but as parcels.

        A record that is for just the wanted shards is passed on without unpacking it.
        """
        found, layout = self._found(job, chunk, shards)
        return [parcel_of(one, asked, self.limits, layout) for asked, one in found]

    def remembered(self, job: bytes, chunk: int, shards: Iterable[int]) -> list[Parcel]:
        """Return a chunk's parcels for some shards: retained, or released but still cached."""
        with self._journal.lock:
            return list(
                self._deltas.parcels_of(job, chunk, np.unique(np.fromiter(shards, np.uint16)))
            )

    def release(
        self, job: bytes, chunks: Iterable[int], shards: Iterable[int] | None = None
    ) -> None:
        """Stop retaining the deltas of some chunks, for the given shards or by default for all.

        Released deltas may reappear after a restart, if their records were moved or damaged.
        """
        archive = self._state.archive
        with self._journal.lock:
            self._journal.check()
            of = range(self.layout.shards) if shards is None else shards
            numbers = np.unique(np.fromiter(of, np.uint16))
            kept = archive.kept(job, BitMap(chunks), numbers)
            if kept:
                with self._journal.logged([(Kind.RELEASE, release_record(job, kept, numbers))]):
                    archive.release(job, kept, numbers)
            self._journal.forget_released()

    @property
    def archive_bytes(self) -> int:
        """The size of the retained deltas in bytes, on the disk if there is one, else in memory."""
        return self._state.archive.size

    def sync(self) -> None:
        """Sync the log: return once every acknowledged write is on the disk."""
        self._journal.sync()

    @property
    def snapshot_due(self) -> bool:
        """Whether the log is so long that a snapshot should replace it."""
        return self._journal.snapshot_due

    def snapshot(self) -> None:
        """Write a snapshot, then delete the log files that it replaces.

        Other threads may write to the store meanwhile. StoreError after `end_snapshots`.
        """
        self._journal.snapshot()

    def end_snapshots(self) -> None:
        """Abort a snapshot in progress in another thread, and refuse to write further ones.

        So whoever is about to close the store does not have to wait for a whole snapshot.
        """
        self._journal.end_snapshots()

    def compact(self) -> None:
        """Merge all batches, free the memory that dropped shards left, and write a snapshot."""
        with self._journal.lock, undisturbed():
            self._journal.check()
            self._state.columns.merge_all()
            self._state.rebuild()
        self.snapshot()
        give_back()

    def _found(
        self, job: bytes, chunk: int, shards: Iterable[int]
    ) -> tuple[list[tuple[Shards, memoryview]], Layout]:
        """Return a chunk's kept records for some shards, and the layout of these shards."""
        with self._journal.lock:
            numbers = np.sort(np.fromiter(shards, np.int64))
            return self._deltas.records(job, chunk, numbers), self.layout

    def _recalled_for(
        self, held: Iterable[Content]
    ) -> tuple[Layout, dict[tuple[int, bytes, int], Delta]]:
        """Recall the deltas that merging this content needs; other threads may write meanwhile.

        Also return the layout at the start.
        """
        with self._journal.lock:
            self._journal.check()
            layout = self.layout
            needed = [one for content in held for one in self._state.needed(content)]
        found = {one: self.recall(one[1], one[2], one[:1]) for one in needed}
        return layout, {one: updates[0].delta for one, updates in found.items() if updates}
