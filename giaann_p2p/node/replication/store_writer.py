"""The only writer of a peer's store: it carries out changes in the order decided, in one thread.

1. Adjacent updates in the queue are made durable as one group, and so are whole shards: many share
   one wait for the disk. If a group fails, each change is retried alone, so that each gets its own
   success or error. Data is unpacked in the thread, too, because that is too slow for the loop.
   Adjacent cold copies are written one after the other, but a few in one visit to the thread.
2. A change that holds, drops or divides shards is retried until it succeeds, because later
   decisions build on it.
3. The queue is bounded (see `fullness`). The time that the queue will take is estimated from recent
   groups, and the estimate may be wrong, because other processes use the processors, too. Each
   update waits for its whole group, so a group is cut off once unpacking has taken half of
   `Options.group_seconds`; the rest goes back to the front of the queue. An update is dropped
   before its write begins if its sender has stopped waiting, or if it has waited for too long.
4. When the number of shards doubles, the shards are divided ahead of the queued changes (see
   `double`). A snapshot in progress is finished first; otherwise the store would wait for it, and
   the queue would wait for the store.
5. An unexpected error ends the writer: `run` raises it.

`swarm.replication.pending_writes` keeps a shard from being dropped while a write to it is queued.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

from giaann_p2p.errors import GiaannError, StoreError, UsageError
from giaann_p2p.node.options import Options
from giaann_p2p.node.replication.effort import Effort
from giaann_p2p.node.replication.holdings import Holdings
from giaann_p2p.store.applied import WITHDRAWN
from giaann_p2p.store.store import Store
from giaann_p2p.store.update import Update
from giaann_p2p.swarm.replication.retract import Withdraw
from giaann_p2p.swarm.wire.actions import (
    Adopt,
    Apply,
    Cool,
    Drop,
    Forget,
    Hold,
    Note,
    Release,
    Thaw,
)
from giaann_p2p.swarm.wire.messages import BUSY


class Double(NamedTuple):
    """Divide all shards, for a swarm of `shards` shards; see `StoreWriter.double`."""

    shards: int
    then: "Callable[[list[Change]], None]"


Change = Hold | Drop | Cool | Thaw | Forget | Note | Apply | Adopt | Release | Withdraw | Double
"""A change to the store."""
OnStored = Callable[[int, GiaannError | None], None]
"""A function called with a change's number, and with its error, or None once it is stored."""
Wanted = Callable[[], bool]
"""A function that returns whether the sender of an update still waits for it."""
TOO_LATE = f"{BUSY}: this update has waited too long for the disk; push it again later"
_COOLED_AT_ONCE = 16
"""Maximum number of cold copies written as one group. More: a leaving peer with many small shards
spends less time between two copies; less: other changes wait for less time."""
T = TypeVar("T")


class StoreWriter:
    """Writes the queued changes to one store, one group after the other.

    The executor `write` runs the changes, and `beside` the snapshots; None means the event loop's
    default. `told` is called with the outcome of each change that has a number.

    Invariant: every queued change is in `_queue` or in `_doing` until it has succeeded or failed.
    """

    def __init__(
        self,
        store: Store,
        holdings: Holdings,
        told: OnStored,
        *,
        write: Executor | None = None,
        beside: Executor | None = None,
        options: Options | None = None,
        clock: Callable[[], float] = time.monotonic,
        log: logging.Logger | None = None,
    ) -> None:
        self.groups = self.applied = self.withdrawn = self.snapshots = 0
        """Totals: groups made durable, updates applied, chunks of disowned peers withdrawn, and
        snapshots taken."""
        self._store, self._holdings, self._told = store, holdings, told
        self._write, self._beside = write, beside
        self._options, self._clock = options or Options(), clock
        self._log = log or logging.getLogger("giaann.node")
        self._queue: deque[Change] = deque()
        self._doing: Sequence[Change] = ()
        self._wanted: dict[int, Wanted] = {}  # by the update's number
        self._updates = self._nbytes = 0  # totals of updates that wait or are being written
        self._effort = Effort()
        self._refused = False  # whether the disk refuses writes; its first refusal is logged
        self._work, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._snapshot: asyncio.Task[None] | None = None
        self._double: Double | None = None  # until it is done

    def __len__(self) -> int:
        return len(self._queue) + len(self._doing)

    def __repr__(self) -> str:
        return f"<StoreWriter: {len(self)} changes wait, {self._nbytes:,} bytes>"

    @property
    def fullness(self) -> float:
        """Used fraction of the queue: the largest of its bytes, changes and seconds; 1 is full.

        The seconds count only from `Options.queue_anyway` updates or `queue_bytes_anyway` bytes on.
        """
        options = self._options
        much = max(self._nbytes / options.queue_bytes, len(self) / options.queue_deeds)
        return max(much, self._waits / options.queue_seconds if self._has_many else 0.0)

    @property
    def _has_many(self) -> bool:
        options = self._options
        many = self._updates >= options.queue_anyway
        return many or self._nbytes >= options.queue_bytes_anyway

    @property
    def _waits(self) -> float:
        """Estimated time that the store will take for all waiting updates, in seconds."""
        return self._effort.of(self._updates, self._nbytes)

    def do(self, change: Change, wanted: Wanted | None = None) -> None:
        """Queue a change to the store; drop an update before its write if it is not `wanted`."""
        if isinstance(change, Apply) and wanted is not None:
            self._wanted[change.number] = wanted
        self._queue.append(change)
        self._count(change, 1)
        self._idle.clear()
        self._work.set()

    @property
    def is_dividing(self) -> bool:
        """Whether shards are being divided now; changes that are queued during that are void."""
        return any(isinstance(one, Double) for one in self._doing)

    def double(self, shards: int, then: Callable[[list[Change]], None]) -> None:
        """Divide all shards once the current group and any snapshot are written.

        `then` is called in the step of the event loop in which the division ends. It is given the
        changes that waited: they are void, because they were decided for the former shards. Only
        notes stay in the queue.
        """
        self._double = Double(shards, then)
        self._idle.clear()
        self._work.set()

    async def idle(self) -> None:
        """Wait until the queue is empty and no change is being carried out."""
        await self._idle.wait()

    async def run(self) -> None:
        """Carry out changes until cancelled; the current group is finished first.

        A snapshot in progress is aborted, because the log has everything anyway.
        """
        try:
            while True:
                await self._work.wait()
                self._begin_snapshot()
                if self._double is not None and self._snapshot is None:
                    self._queue.appendleft(self._double)
                if self._queue:
                    await self._do_next()
                if not self._queue:
                    self._work.clear()
                    if self._double is None:
                        self._idle.set()
                self._begin_snapshot()
        finally:
            self._store.end_snapshots()
            if self._snapshot is not None:
                self._snapshot.cancel()
                await asyncio.gather(self._snapshot, return_exceptions=True)

    async def _do_next(self) -> None:
        self._doing = self._next()
        self._holdings.is_dividing = self.is_dividing
        while not await self._done():
            pass
        self._doing = ()
        self._holdings.is_dividing = False
        self._turn_down()

    def _turn_down(self) -> None:
        """Drop the queued updates that are no longer wanted, and report an error for each."""
        late = {number for number, wanted in self._wanted.items() if not wanted()}
        if not late:
            return
        waiting, self._queue = self._queue, deque[Change]()
        over = list[Change]()
        for change in waiting:
            is_late = isinstance(change, Apply) and change.number in late
            (over if is_late else self._queue).append(change)
        for change in over:  # after the queue is rebuilt, because `_over` may append to it
            self._over(change, StoreError(TOO_LATE))

    def _next(self) -> Sequence[Change]:
        """Take the next group from the queue: adjacent updates, shards or cold copies to write.

        Any other change is alone.
        """
        first = self._queue.popleft()
        changes, left = [first], self._room(first)
        while left and self._queue and type(self._queue[0]) is type(first):
            left -= _weight(self._queue[0])
            if left < 0:
                break
            changes.append(self._queue.popleft())
        return changes

    def _room(self, first: Change) -> int:
        """Return how much more fits into a group after its first change, in units of `_weight`."""
        if isinstance(first, Apply):
            return max(0, self._options.group_bytes - _weight(first))
        if isinstance(first, Adopt):
            return max(0, self._options.group_connections - _weight(first))
        return _COOLED_AT_ONCE - 1 if isinstance(first, Cool) else 0

    async def _done(self) -> bool:
        """Carry out the current group of changes; return whether they have succeeded or failed.

        False means that the disk refused them, and that the same changes have to be tried again.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        errors = await self._in_thread(self._write, lambda: self._carry_out(self._doing))
        if errors is None:
            await asyncio.sleep(self._options.retry)
            return False
        done, rest = self._doing[: len(errors)], self._doing[len(errors) :]
        self._doing = done
        self._queue.extendleft(reversed(rest))
        if isinstance(done[0], Apply):
            self._effort.took(len(done), sum(map(_size, done)), clock() - began)
        for change, error in zip(done, errors, strict=True):
            self._over(change, error)
        return True

    def _over(self, change: Change, error: GiaannError | None) -> None:
        self._count(change, -1)
        if isinstance(change, Apply):
            self._wanted.pop(change.number, None)
        if isinstance(change, Apply | Adopt | Cool | Thaw):
            self._told(change.number, error)
        elif isinstance(change, Withdraw) and not change.over:
            self.do(change)
        elif isinstance(change, Double):
            self._double = None
            change.then(self._void())

    def _void(self) -> list[Change]:
        """Remove everything but notes from the queue, and return it."""
        waiting, self._queue = self._queue, deque[Change]()
        void = list[Change]()
        for change in waiting:
            (self._queue if isinstance(change, Note) else void).append(change)
        for change in void:
            self._count(change, -1)
        self._wanted.clear()
        return void

    def _count(self, change: Change, sign: int) -> None:
        if isinstance(change, Apply):
            self._updates += sign
            self._nbytes += sign * _size(change)

    async def _in_thread(self, executor: Executor | None, work: Callable[[], T]) -> T:
        """Run `work` in a thread, and wait for its end even if the waiting task is cancelled."""
        future = asyncio.get_running_loop().run_in_executor(executor, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({future})
            future.exception()  # mark it as retrieved: a cancelled caller does not want it
            raise

    # These methods run in the thread.

    def _carry_out(self, changes: Sequence[Change]) -> list[GiaannError | None] | None:
        """Carry out changes; return an error or None for each, in order.

        If the list is shorter than `changes`, the other changes are left for later. None instead of
        a list means that all of them have to be tried again.
        """
        try:
            first = changes[0]
            if isinstance(first, Hold | Drop | Double):
                return self._held(first)
            if isinstance(first, Note):
                return [self._tried(partial(self._store.note, first.key, first.value))]
            if isinstance(first, Cool | Thaw | Forget):
                some = (one for one in changes if isinstance(one, Cool | Thaw | Forget))
                return [self._moved(one) for one in some]
            if isinstance(first, Release):
                return self._released(first)
            if isinstance(first, Withdraw):
                return self._withdrawn(first)
            if isinstance(first, Adopt):
                return self._adopted([change for change in changes if isinstance(change, Adopt)])
            return self._applied([change for change in changes if isinstance(change, Apply)])
        finally:
            self._holdings.look()

    def _held(self, change: Hold | Drop | Double) -> list[GiaannError | None] | None:
        try:
            if isinstance(change, Double):
                self._store.double(change.shards)
            elif isinstance(change, Hold):
                self._store.hold(change.shards.tolist())
            else:
                self._store.drop(change.shards.tolist())
        except StoreError as error:
            if not self._refused:
                self._log.warning("the disk refuses a write, trying again: %s", error)
            self._refused = True
            return None
        self._refused = False
        return [None]

    def _moved(self, change: Cool | Thaw | Forget) -> GiaannError | None:
        """Move a shard between memory and its cold copy, or delete cold copies."""
        if isinstance(change, Cool):
            error = self._tried(lambda: self._store.cool(change.shard, change.now))
        elif isinstance(change, Thaw):
            error = self._tried(lambda: self._store.thaw(change.shard))
        else:
            error = self._tried(lambda: self._store.cold.forget(change.shards.tolist()))
        if error:
            self._log.warning("a cold copy could not be moved, trying again later: %s", error)
        return error

    def _released(self, change: Release) -> list[GiaannError | None]:
        each = [
            (job, chunks.of(job), shards.tolist())
            for shards, chunks in change.parts
            for job in chunks
        ]
        for one in each:
            error = self._tried(partial(self._store.release, *one))
            if error:
                self._log.warning("deltas that are not needed any more stay on the disk: %s", error)
        return [None]

    def _withdrawn(self, change: Withdraw) -> list[GiaannError | None]:
        updates = change.next(self._store)
        errors = self._together(updates, self._store.apply)
        for update, error in zip(updates, errors, strict=True):
            number = update.chunk - WITHDRAWN
            if error:
                self._log.warning(
                    "chunk %d of a disowned peer could not be withdrawn: %s", number, error
                )
        self.withdrawn += errors.count(None)
        if error := self._tried(lambda: change.done(self._store)):
            self._log.warning(
                "withdrawals meant for this peer alone may be sent to other owners: %s", error
            )
        return [None]

    def _applied(self, changes: Sequence[Apply]) -> list[GiaannError | None]:
        unpacked = self._unpacked(changes)
        errors = self._together(unpacked, lambda some: self._store.apply(list(chain(*some))))
        told = zip(changes, errors, strict=False)
        self.applied += sum(len(change.updates) for change, error in told if error is None)
        return errors

    def _unpacked(self, changes: Sequence[Apply]) -> list[list[Update] | GiaannError]:
        """Unpack updates for at most half of `Options.group_seconds`, but at least one update."""
        unpacked, until = [], self._clock() + self._options.group_seconds / 2
        for change in changes:
            unpacked.append(_or_error(change.unpacked))
            if self._clock() >= until:
                break
        return unpacked

    def _adopted(self, changes: Sequence[Adopt]) -> list[GiaannError | None]:
        unpacked = [_or_error(change.content) for change in changes]
        return self._together(unpacked, lambda contents: self._store.adopt(*contents))

    def _together(
        self, unpacked: Sequence[T | GiaannError], change: Callable[[list[T]], object]
    ) -> list[GiaannError | None]:
        """Apply all successfully unpacked items as one group; if that fails, one by one."""
        errors: list[GiaannError | None]
        sound = [one for one in unpacked if not isinstance(one, GiaannError)]
        error = self._tried(lambda: change(sound)) if sound else None
        self.groups += bool(sound)
        if error is None or len(sound) == 1:
            errors = [error] * len(sound)
        else:
            errors = [of for one in sound for of in self._together([one], change)]
        told = iter(errors)
        return [one if isinstance(one, GiaannError) else next(told) for one in unpacked]

    def _tried(self, change: Callable[[], object]) -> GiaannError | None:
        """Change the store; return the error, if any. Raise if the store takes no more changes."""
        try:
            change()
        except UsageError as error:
            self._store.release(b"", ())  # raises if the store is closed to all changes
            return error
        except GiaannError as error:
            return error
        return None

    # Snapshots.

    def _begin_snapshot(self) -> None:
        if self._snapshot is not None and self._snapshot.done():
            self._snapshot.result()  # raises an unexpected error
            self._snapshot = None
        if self._snapshot is None and self._store.snapshot_due and self._double is None:
            self._snapshot = asyncio.get_running_loop().create_task(self._take_snapshot())
            self._snapshot.add_done_callback(lambda _: self._work.set())

    async def _take_snapshot(self) -> None:
        error = await self._in_thread(self._beside, lambda: self._tried(self._store.snapshot))
        if error is None:
            self.snapshots += 1
            return
        self._log.warning("a snapshot failed, trying again later: %s", error)
        await asyncio.sleep(self._options.snapshot_retry)


def _or_error(unpack: Callable[[], T]) -> T | GiaannError:
    try:
        return unpack()
    except GiaannError as error:
        return error


def _weight(change: Change) -> int:
    """Return a change's size within its group: bytes of updates, or connections of shards.

    A cold copy to be written counts as 1.
    """
    if isinstance(change, Cool):
        return 1
    return change.arrived.manifest.connections if isinstance(change, Adopt) else _size(change)


def _size(change: Change) -> int:
    return sum(len(update.parcel) for update in change.updates) if isinstance(change, Apply) else 0
