"""The store: columns in memory, as durable as a log and snapshots make them.

A write is logged, then done, then acknowledged; what goes wrong before the log has it leaves no
trace. After a crash the store is what was acknowledged, and perhaps more of what was about to be:
whole chunks always. Reads ask nobody: any thread may read while one writes.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pyroaring import BitMap

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.model.digest import added
from giaann_p2p.model.rows import Answer, Neuron, Question
from giaann_p2p.model.sequence import Names
from giaann_p2p.model.spec import ModelSpec
from giaann_p2p.store import home, snapshot
from giaann_p2p.store.budget import Budget
from giaann_p2p.store.codec.parcel import Limits, encode
from giaann_p2p.store.disk.files import DiskFiles, Files
from giaann_p2p.store.disk.log import Log
from giaann_p2p.store.disk.recover import recover
from giaann_p2p.store.disk.sync import ALWAYS, Sync
from giaann_p2p.store.layout import Layout, Shards
from giaann_p2p.store.memory.heap import give_back
from giaann_p2p.store.memory.row import delta_of
from giaann_p2p.store.recovery import recovered, seen
from giaann_p2p.store.state import (
    Content,
    Kind,
    State,
    content_record,
    note_record,
    shards_record,
)
from giaann_p2p.store.statistics import Statistics, statistics
from giaann_p2p.store.undisturbed import undisturbed
from giaann_p2p.store.update import Update, update_record

_LEAST_LOG = 64 << 20
_LOG_TO_SNAPSHOT = 2
"""How large the log may get, in bytes and in snapshots, before it is time for the next one."""


@dataclass(frozen=True)
class Disk:
    """Where a store keeps its files."""

    files: Files
    identity: bytes
    log: Log


class Store:
    """Shards of columns. Get one from `in_memory`, `at` or `open`."""

    def __init__(
        self,
        state: State,
        disk: Disk | None,
        budget: Budget,
        sealed: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state, self._disk, self._budget, self._clock = state, disk, budget, clock
        self._sealed = sealed  # why it takes no writes
        self._writing = threading.Lock()
        self._snapshotting = threading.RLock()
        self._held = ExitStack()
        self._snapshot_size = snapshot.size(disk.files) if disk else 0

    @classmethod
    def in_memory(cls, spec: ModelSpec, layout: Layout, budget: Budget | None = None) -> Self:
        """Make a store without any file."""
        return cls(State(spec, layout), None, budget or Budget())

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
    ) -> Self:
        """Open the store in a directory; made if there is none, unless it is only to be read."""
        files = DiskFiles(directory)
        if readonly:
            return cls.open(files, spec, layout, readonly=True, budget=budget)
        with ExitStack() as held:
            held.enter_context(home.locked(directory))
            store = cls.open(files, spec, layout, sync=sync, budget=budget)
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
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Open the store in these files; the caller sees to it that nobody else writes there."""
        if readonly:
            return cls._seen(files, spec, layout, budget or Budget())
        if not home.exists(files):
            deed = home.draft(files, spec or ModelSpec(), layout or Layout())
            recover(files, deed.identity)[0].close()
            home.sign(files)
        deed = home.read(files)
        _check_same(files, deed, spec, layout)
        state, log = recovered(files, deed, sync)
        give_back()
        return cls(state, Disk(files, deed.identity, log), budget or Budget(), clock=clock)

    @classmethod
    def _seen(
        cls, files: Files, spec: ModelSpec | None, layout: Layout | None, budget: Budget
    ) -> Self:
        if not home.exists(files):
            raise StoreError(f"there is no store in {files.path('')}")
        deed = home.read(files)
        _check_same(files, deed, spec, layout)
        return cls(seen(files, deed), None, budget, "this store was opened for reading only")

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

    def rows(self, neurons: Iterable[Neuron]) -> bytes:
        """Return the rows of some neurons as a parcel; those that are not here are left out."""
        found = (self._state.columns.row(neuron) for neuron in dict.fromkeys(neurons))
        return encode(delta_of([row for row in found if row]))

    def applied(self, shard: int, job: bytes) -> BitMap:
        """Return which chunks of a job a shard has taken in."""
        with self._writing:
            ledger = self._state.ledger
            return ledger.of(shard).of(job).copy() if shard in ledger else BitMap()

    def apply(self, updates: Sequence[Update]) -> list[Shards]:
        """Take chunks in, durably; return for each the shards to which it was new."""
        for update in updates:
            update.check(self.spec)
        parcels = [update.parcel or encode(update.delta) for update in updates]
        with self._write():
            planned = self._state.planned(updates)
            self._budget.admit(self._state, updates, planned)
            new = [
                (update, fresh, parcel)
                for update, fresh, parcel in zip(updates, planned, parcels, strict=True)
                if len(fresh)
            ]
            with self._logged((Kind.UPDATE, update_record(*one)) for one in new):
                for update, fresh, _ in new:
                    self._state.add(update, fresh)
        return planned

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

    def adopt(self, held: Content) -> None:
        """Take in what shards hold elsewhere.

        What a shard here has beyond that stays; UsageError if that cannot be told apart, because
        some but not all of the chunks are in both; StoreError if the same chunks came to something
        else there.
        """
        with self._write():
            whole = self._state.united(held)
            if self._state.is_known(whole):
                return
            self._budget.admit_content(self._state, whole)
            try:
                record = content_record(whole)
            except OverflowError as error:
                raise UsageError(str(error)) from None
            with self._logged([(Kind.CONTENT, record)]):
                self._state.adopt(whole)

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
                notes, shards = self.notes, self.shards  # as they are where the new file begins
            records = self._snapshot_records(notes, shards)
            self._snapshot_size = snapshot.write(files, self._disk.identity, number, records)
            with self._writing:
                log.forget_before(number)
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

    @contextmanager
    def _write(self) -> Iterator[None]:
        with self._writing:
            if self._sealed:
                raise UsageError(self._sealed)
            yield

    @contextmanager
    def _logged(self, records: Iterable[tuple[int, bytes]]) -> Iterator[None]:
        """Have records in the log, durably, before they are done."""
        with undisturbed():
            if self._disk:
                self._disk.log.append(list(records), self._clock())
            try:
                yield
            except BaseException as error:
                self._sealed = f"what is in memory lags behind the log ({error!r}): open it anew"
                raise


def _check_same(
    files: Files, deed: home.Deed, spec: ModelSpec | None, layout: Layout | None
) -> None:
    if spec is not None and spec != deed.spec:
        differences = "; ".join(spec.differences(deed.spec))
        raise UsageError(f"the store in {files.path('')} has another model: {differences}")
    if layout is not None and layout != deed.layout:
        raise UsageError(f"the store in {files.path('')} has another layout: {deed.layout}")
