"""The store: columns in memory, as durable as a log and snapshots make them.

A write is logged, then done, then acknowledged; what goes wrong before the log has it leaves no
trace. After a crash the store is what was acknowledged, and perhaps more of what was about to be:
whole chunks always. Reads ask nobody: any thread may read while one writes.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from pyroaring import BitMap

from giaann_p2p.errors import DiskError, UsageError
from giaann_p2p.model.delta import Delta
from giaann_p2p.model.digest import added
from giaann_p2p.model.rows import Answer, Question
from giaann_p2p.model.sequence import Ids, Names
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store import home, snapshot
from giaann_p2p.store.applied import Applied
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.codec.parcel import Limits, encode
from giaann_p2p.store.codec.sheaf import encode as encode_sheaf
from giaann_p2p.store.content import Content
from giaann_p2p.store.deltas import Deltas
from giaann_p2p.store.disk.files import DiskFiles, Files
from giaann_p2p.store.disk.record import Place
from giaann_p2p.store.disk.replay import file_numbers
from giaann_p2p.store.disk.sync import ALWAYS, Sync
from giaann_p2p.store.kept import KEPT_BYTES, Kept, kept_of
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.memory.heap import give_back
from giaann_p2p.store.opening import Disk, looked_at, opened
from giaann_p2p.store.records import (
    Kind,
    content_record,
    note_record,
    release_record,
    shards_record,
)
from giaann_p2p.store.state import State
from giaann_p2p.store.statistics import Statistics, statistics
from giaann_p2p.store.told import Told, as_it_came, by_update, released_at_once
from giaann_p2p.store.undisturbed import undisturbed
from giaann_p2p.store.update import (
    Parcel,
    Update,
    cut,
    parcel_of,
    update_of,
    update_record,
)

_LEAST_LOG = 8 << 20
_LOG_TO_SNAPSHOT = 2
"""How large the log may get, in bytes and in snapshots, before it is time for the next one. A store
opens the sooner for a short log: each update in it takes a millisecond, however little it adds."""


class Store:
    """Shards of columns. Get one from `in_memory`, `at` or `open`."""

    def __init__(
        self,
        state: State,
        disk: Disk | None,
        budget: Budget,
        sealed: str = "",
        retain: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state, self._disk, self._budget, self._clock = state, disk, budget, clock
        self._sealed = sealed  # why it takes no writes
        self._retain = retain
        self._deltas = Deltas(state, disk)
        self._writing = threading.Lock()
        self._snapshotting = threading.RLock()
        self._held = ExitStack()
        self._snapshot_size = snapshot.size(disk.files) if disk else 0
        self._first = (disk and snapshot.newest(disk.files)) or 1  # the log file behind it
        numbers = file_numbers(disk.files) if disk else []
        self._old = {number for number in numbers if number < self._first}  # that may be there

    @classmethod
    def in_memory(
        cls,
        spec: ModelSpec,
        layout: Layout,
        budget: Budget | None = None,
        *,
        retain: bool = False,
    ) -> Self:
        """Make a store without any file."""
        return cls(State(spec, layout), None, budget or Budget(), retain=retain)

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
        """Open the store in a directory; made if there is none, unless it is only to be read.

        `retain`: keep the delta of each update until it is released; without it, none is kept, and
        those that were are gone. `spare`: bytes of released ones that are not forgotten at once.
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
        """Open the store in these files; the caller sees to it that nobody else writes there."""
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
        """Let go of the directory; what was acknowledged stays."""
        self._sealed = self._sealed or "this store is closed"  # a snapshot is given up, too
        with self._snapshotting, self._writing:
            try:
                if self._disk:
                    self._disk.log.close()
            finally:
                self._held.close()

    @property
    def spec(self) -> ModelSpec:
        """The model's parameters."""
        return self._state.spec

    @property
    def layout(self) -> Layout:
        """How rows are spread over shards."""
        return self._state.columns.layout

    @property
    def limits(self) -> Limits:
        """What a parcel may hold to be read here."""
        return self._state.limits

    @property
    def shards(self) -> Shards:
        """The shards that are held, ascending."""
        return self._state.shards

    @property
    def nbytes(self) -> int:
        """How much memory it takes, about."""
        return self._state.nbytes

    @property
    def notes(self) -> dict[str, bytes]:
        """What the caller noted down."""
        return dict(self._state.notes)

    def read(self, question: Question) -> Answer:
        """Return the neurons' rows, in their order; None for one that is not here."""
        return [self._state.columns.row(neuron) for neuron in question.neurons]

    def rows(self, concept: Ids, feature: Ids) -> bytes:
        """Return the rows of some neurons as a sheaf; those that are not here are left out."""
        rows = self._state.columns.rows(concept, feature)
        return encode_sheaf(rows, self.spec.branches, self.spec.segments)

    def connections_of(self, concept: Ids, feature: Ids) -> int:
        """Return how many connections some neurons have, but for those that were added lately."""
        return self._state.columns.connections_of(concept, feature)

    def features(self, concept: int, most: int) -> Ids:
        """Return the features of a column's rows that are here, the most frequent first."""
        return self._state.columns.features(concept, most)

    def applied(self, shard: int, job: bytes) -> BitMap:
        """Return which chunks of a job a shard has taken in."""
        with self._writing:
            ledger = self._state.ledger
            return ledger.of(shard).of(job).copy() if shard in ledger else BitMap()

    def apply(self, updates: Sequence[Update]) -> list[Shards]:
        """Take chunks in, durably; return for each the shards to which it was new.

        Or withdraw them: a shard lets go of what it got from a chunk, whoever told it.
        """
        for update in updates:
            update.check(self.spec)
        parcels = [update.parcel or encode(update.delta) for update in updates]
        with self._write():
            told = [
                one
                for at, (update, parcel) in enumerate(zip(updates, parcels, strict=True))
                for one in as_it_came(
                    Told(at, update, parcel), self._deltas.parcels_of, self.limits, self.layout
                )
            ]
            planned = self._state.planned(one.update for one in told)
            new = [(one, fresh) for one, fresh in zip(told, planned, strict=True) if len(fresh)]
            records = [
                (Kind.UPDATE, update_record(one.update, fresh, one.parcel, self.layout))
                for one, fresh in new
            ]
            kept = sum(KEPT_BYTES + (0 if self._disk else len(r)) for _, r in records)
            mine = [one.update for one in told]
            self._budget.admit(self._state, mine, planned, kept if self._retain else 0)
            with self._logged([*records, *released_at_once(new)]) as places:
                for (one, fresh), (_, record), place in zip(new, records, places, strict=False):
                    self._state.add(one.update, fresh)
                    if self._retain and not one.is_own:
                        self._state.archive.add(kept_of(memoryview(record), place))
        return by_update(len(updates), told, planned)

    def note(self, key: str, value: bytes) -> None:
        """Note something down, durably; it takes the place of what was there."""
        with self._write(), self._logged([(Kind.NOTE, note_record(key, value))]):
            self._state.notes[key] = value

    def hold(self, shards: Iterable[int]) -> None:
        """Begin to hold shards, empty; those that are held stay as they are."""
        with self._write():
            new = [number for number in shards if number not in self._state.ledger]
            self._state.check_shards(new)
            if new:
                with self._logged([(Kind.HOLD, shards_record(new))]):
                    self._state.hold(new)

    def drop(self, shards: Iterable[int]) -> None:
        """Let shards go, and all they hold."""
        with self._write():
            old = [number for number in shards if number in self._state.ledger]
            if old:
                with self._logged([(Kind.DROP, shards_record(old))]):
                    self._state.drop(old)

    def content(self, *shards: int) -> Content:
        """Return what some shards hold, as they are now."""
        with self._writing:
            captured = self._state.capture(shards)
        return self._state.content(captured)

    def statistics(self, *shards: int) -> Statistics:
        """Count what some shards hold; without any given, all."""
        with self._writing:
            captured = self._state.capture(shards or self.shards.tolist())
        return statistics(captured)

    def names(self) -> Names:
        """Return the text of every word of a row that is here."""
        with self._writing:
            return dict(self._state.columns.names)

    def adopt(self, *held: Content) -> None:
        """Take in what shards hold elsewhere, durably: all of it, or nothing.

        What a shard here has beyond that stays; UsageError if that cannot be told apart, because
        some but not all of the chunks are in both, and the deltas of those that are not there are
        not kept; StoreError if the same chunks came to something else there.
        """
        shards = [shard for one in held for shard in one.shards.tolist()]
        if len(set(shards)) < len(shards):
            raise UsageError("each shard's content comes once, with its set of chunks")
        ahead = self._recalled_for(held)
        with self._write():
            united = [
                self._state.united(one, lambda *of: ahead.get(of) or self._deltas.of(*of))
                for one in held
            ]
            new = [one for one in united if not self._state.is_known(one)]
            self._budget.admit_content(self._state, new)
            try:
                records = [(Kind.CONTENT, content_record(one)) for one in new]
            except OverflowError as error:
                raise UsageError(str(error)) from None
            with self._logged(records):
                for one in new:
                    self._state.adopt(one)

    def retained(self, job: bytes) -> BitMap:
        """Return the chunks of a job of which a delta is at hand, for some shard."""
        with self._writing:
            return self._state.archive.chunks(job)

    def kept(self) -> list[Kept]:
        """Return all records with deltas that are at hand, also of what was released."""
        with self._writing:
            return self._state.archive.everything

    def parcel(self, kept: Kept) -> Parcel | None:
        """Return one of them, for those of its shards that are held; None if it is gone."""
        with self._writing:
            return self._deltas.parcel(kept, self.shards)

    @property
    def unreadable(self) -> int:
        """How many records were found that cannot be read, of those with deltas that are kept."""
        return len(self._deltas.unreadable)

    def retained_for(self, shard: int) -> Applied:
        """Return the chunks whose delta for a shard is at hand."""
        with self._writing:
            return self._state.archive.of(shard)

    def remembered_for(self, shard: int) -> Applied:
        """Return the same, and those whose delta was released and is not forgotten yet."""
        with self._writing:
            archive = self._state.archive
            return archive.of(shard) | archive.spare.of(shard)

    def recall(self, job: bytes, chunk: int, shards: Iterable[int]) -> list[Update]:
        """Return the delta of a chunk, cut to those of some shards for which it is at hand.

        It comes in as many updates as it came. DamagedError, once, for a record that is not what
        was written; it is retained no longer.
        """
        found = self._found(job, chunk, shards)
        updates = [(update_of(record, self.limits), asked) for asked, record in found]
        return [cut(update, asked, self.layout) for update, asked in updates]

    def parcels(self, job: bytes, chunk: int, shards: Iterable[int]) -> list[Parcel]:
        """Return the same as parcels; a record that is for these shards alone is not unpacked."""
        found = self._found(job, chunk, shards)
        return [parcel_of(one, asked, self.limits, self.layout) for asked, one in found]

    def remembered(self, job: bytes, chunk: int, shards: Iterable[int]) -> list[Parcel]:
        """Return the same, also of what was released and is not forgotten yet."""
        with self._writing:
            return list(
                self._deltas.parcels_of(job, chunk, np.unique(np.fromiter(shards, np.uint16)))
            )

    def release(
        self, job: bytes, chunks: Iterable[int], shards: Iterable[int] | None = None
    ) -> None:
        """Retain the deltas that some shards, or all, got of some chunks no longer.

        After a restart they may be back.
        """
        archive = self._state.archive
        of = range(self.layout.shards) if shards is None else shards
        numbers = np.unique(np.fromiter(of, np.uint16))
        with self._write():
            kept = archive.kept(job, BitMap(chunks), numbers)
            if kept:
                with self._logged([(Kind.RELEASE, release_record(job, kept, numbers))]):
                    archive.release(job, kept, numbers)
            if not self._old <= self._state.archive.files:
                with suppress(DiskError):  # the next release, or snapshot, does it
                    self._forget()

    @property
    def archive_bytes(self) -> int:
        """How many bytes the retained deltas take, on the disk, or in memory without one."""
        return self._state.archive.size

    def sets(self, shards: Iterable[int]) -> dict[int, Applied]:
        """Return the chunks that some shards have taken in, those that are held here.

        They stay as they are now; equal sets are one object.
        """
        with self._writing:
            return self._state.ledger.some(shards)

    def digests(self) -> Iterator[tuple[int, int]]:
        """Digest what each shard holds: equal exactly for equal content."""
        for number in self.shards.tolist():
            held = self.content(number)
            if len(held.shards):
                yield number, held.digest

    def digest(self) -> int:
        """Digest all: the sum over the shards."""
        return added(number for _, number in self.digests())

    def sync(self) -> None:
        """Return when all that was acknowledged is on the disk, if it was not before."""
        with self._write():
            if self._disk:
                self._disk.log.sync()

    @property
    def snapshot_due(self) -> bool:
        """Whether the log has grown so long that a snapshot should take its place."""
        if self._disk is None:
            return False
        return self._disk.log.size > max(_LEAST_LOG, _LOG_TO_SNAPSHOT * self._snapshot_size)

    def snapshot(self) -> None:
        """Write all into a snapshot and forget the log before; writes go on meanwhile."""
        if self._disk is None:
            return
        files, log = self._disk.files, self._disk.log
        with self._snapshotting:
            with self._write(), undisturbed():
                number = log.roll()
                self._state.archive.move(log.moves())
                notes, shards = self.notes, self.shards  # as they are where the new file begins
            records = self._snapshot_records(notes, shards)
            self._snapshot_size = snapshot.write(files, self._disk.identity, number, records)
            with self._writing:
                self._first = number
                self._forget()
            snapshot.forget_before(files, number)

    def compact(self) -> None:
        """Merge what is not merged yet, let go of what only dropped shards had, make a snapshot."""
        with self._write(), undisturbed():
            self._state.columns.merge_all()
            self._state.rebuild()
        self.snapshot()
        give_back()

    def _snapshot_records(
        self, notes: dict[str, bytes], shards: Shards
    ) -> Iterator[tuple[int, bytes]]:
        yield Kind.HOLD, shards_record(shards.tolist())
        for key, value in notes.items():
            yield Kind.NOTE, note_record(key, value)
        for part in self._state.parts(shards):
            with self._write():  # once it is sealed, what is in memory is not to be kept
                captured = self._state.capture(part)
            yield Kind.CONTENT, content_record(self._state.content(captured))

    def _found(
        self, job: bytes, chunk: int, shards: Iterable[int]
    ) -> list[tuple[Shards, memoryview]]:
        with self._writing:
            return self._deltas.records(job, chunk, np.sort(np.fromiter(shards, np.int64)))

    def _recalled_for(self, held: Iterable[Content]) -> dict[tuple[int, bytes, int], Delta]:
        """Recall, while others write, what it takes to add content to what is here."""
        with self._write():
            needed = [one for content in held for one in self._state.needed(content)]
        found = {one: self.recall(one[1], one[2], one[:1]) for one in needed}
        return {one: updates[0].delta for one, updates in found.items() if updates}

    def _forget(self) -> None:
        """Remove the log files before the snapshot, but for those with what is kept."""
        if self._disk:
            kept = self._state.archive.files
            self._disk.log.forget_before(self._first, kept)
            self._old = {number for number in kept if number < self._first}

    @contextmanager
    def _write(self) -> Iterator[None]:
        with self._writing:
            if self._sealed:
                raise UsageError(self._sealed)
            yield

    @contextmanager
    def _logged(self, records: Sequence[tuple[int, bytes]]) -> Iterator[Sequence[Place | None]]:
        """Have records in the log, durably, before they are done; tell where each stands."""
        with undisturbed():
            places: Sequence[Place | None] = [None] * len(records)
            if self._disk:
                places = self._disk.log.append(records, self._clock())
                self._state.archive.move(self._disk.log.moves())
            try:
                yield places
            except BaseException as error:
                self._sealed = f"what is in memory lags behind the log ({error!r}): open it anew"
                raise
