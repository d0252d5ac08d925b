"""The only writer of a peer's store: it carries out changes in the order decided, in one thread.

1. Adjacent updates in the queue are made durable as one group, and so are whole shards: many share
   one wait for the disk. If a group fails, each change is retried alone, so that each gets its own
   success or error. Data is unpacked in the thread, too, because that is too slow for the loop.
2. A change that holds or drops shards is retried until it succeeds, because later decisions build
   on it.
3. The queue is bounded: see `fullness`. The time that the queue will take is estimated from recent
   groups, and the estimate may be wrong, because other processes use the processors, too. So a
   group is cut off once unpacking has taken half of `Options.group_seconds`, because each update
   waits for its whole group; the rest goes back to the front of the queue. An update is dropped
   before it begins if its sender has stopped waiting, or if it has waited for too long.
4. An unexpected error ends the writer: `run` raises it.

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
from typing import TypeVar

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

Deed = Hold | Drop | Cool | Thaw | Forget | Note | Apply | Adopt | Release | Withdraw
OnStored = Callable[[int, GiaannError | None], None]
"""Called with the number of a change, and None once it is stored or else the error."""
Wanted = Callable[[], bool]
"""A function that returns whether the sender of an update still waits for it."""
TOO_LATE = f"{BUSY}: it has waited for the disk for too long; push it again later"
T = TypeVar("T")


class StoreWriter:
    """Writes to one store; `write` runs the changes, `beside` the snapshots (None: the loop's own).

    Invariant: every change that was given is in `_queue` or in `_doing` until it is over.
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
        """Totals: groups made durable, updates, withdrawn chunks of disowned peers, snapshots."""
        self._store, self._holdings, self._told = store, holdings, told
        self._write, self._beside = write, beside
        self._options, self._clock = options or Options(), clock
        self._log = log or logging.getLogger("giaann.node")
        self._queue: deque[Deed] = deque()
        self._doing: Sequence[Deed] = ()
        self._wanted: dict[int, Wanted] = {}  # by the update's number
        self._updates = self._nbytes = 0  # totals of updates that wait or are being written
        self._effort = Effort()
        self._refused = False  # whether the disk refuses writes, which was logged
        self._work, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._snapshot: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._queue) + len(self._doing)

    def __repr__(self) -> str:
        return f"<StoreWriter: {len(self)} deeds wait, {self._nbytes:,} bytes>"

    @property
    def fullness(self) -> float:
        """Used fraction of the queue: the largest one of its bytes, changes and seconds; 1 is full.

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

    def do(self, deed: Deed, wanted: Wanted | None = None) -> None:
        """Queue a change; an update is dropped if it is not `wanted` any more."""
        if isinstance(deed, Apply) and wanted is not None:
            self._wanted[deed.number] = wanted
        self._queue.append(deed)
        self._count(deed, 1)
        self._idle.clear()
        self._work.set()

    async def idle(self) -> None:
        """Return when the queue is empty and no change is being carried out."""
        await self._idle.wait()

    async def run(self) -> None:
        """Carry out changes for ever; when cancelled, finish the current one first."""
        try:
            while True:
                await self._work.wait()
                await self._do_next()
                if not self._queue:
                    self._work.clear()
                    self._idle.set()
                self._begin_snapshot()
        finally:
            if self._snapshot is not None:
                self._snapshot.cancel()
                await asyncio.gather(self._snapshot, return_exceptions=True)

    async def _do_next(self) -> None:
        self._doing = self._next()
        while not await self._done():
            pass
        self._doing = ()
        self._turn_down()

    def _turn_down(self) -> None:
        """Drop the waiting updates that are no longer wanted, each with an error."""
        late = {number for number, wanted in self._wanted.items() if not wanted()}
        if not late:
            return
        waiting, self._queue = self._queue, deque[Deed]()
        over = list[Deed]()
        for deed in waiting:
            is_late = isinstance(deed, Apply) and deed.number in late
            (over if is_late else self._queue).append(deed)
        for deed in over:  # after the queue is rebuilt, because `_over` may append to it
            self._over(deed, StoreError(TOO_LATE))

    def _next(self) -> Sequence[Deed]:
        """Take the next change from the queue, with all that form one group with it."""
        first = self._queue.popleft()
        deeds, left = [first], self._room(first)
        while left and self._queue and type(self._queue[0]) is type(first):
            left -= _weight(self._queue[0])
            if left < 0:
                break
            deeds.append(self._queue.popleft())
        return deeds

    def _room(self, first: Deed) -> int:
        """Return the room left in a change's group: bytes of updates, or connections of shards."""
        if isinstance(first, Apply):
            return max(0, self._options.group_bytes - _weight(first))
        if isinstance(first, Adopt):
            return max(0, self._options.group_connections - _weight(first))
        return 0

    async def _done(self) -> bool:
        """Carry out `_doing`; return whether its changes are over, with success or an error.

        False means that the disk refused, and the same changes are to be tried again.
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
        for deed, error in zip(done, errors, strict=True):
            self._over(deed, error)
        return True

    def _over(self, deed: Deed, error: GiaannError | None) -> None:
        self._count(deed, -1)
        if isinstance(deed, Apply):
            self._wanted.pop(deed.number, None)
        if isinstance(deed, Apply | Adopt | Cool | Thaw):
            self._told(deed.number, error)
        elif isinstance(deed, Withdraw) and not deed.over:
            self.do(deed)

    def _count(self, deed: Deed, sign: int) -> None:
        if isinstance(deed, Apply):
            self._updates += sign
            self._nbytes += sign * _size(deed)

    async def _in_thread(self, executor: Executor | None, work: Callable[[], T]) -> T:
        """Run `work` in a thread and wait for its end, even if this is cancelled meanwhile."""
        future = asyncio.get_running_loop().run_in_executor(executor, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({future})
            future.exception()  # mark it as retrieved: a cancelled caller does not want it
            raise

    # In the thread.

    def _carry_out(self, deeds: Sequence[Deed]) -> list[GiaannError | None] | None:
        """Change the store; return an error or None for each change carried out, from the first.

        A shorter list leaves the other changes for later; None instead of a list requests a retry.
        """
        try:
            first = deeds[0]
            if isinstance(first, Hold | Drop):
                return self._held(first)
            if isinstance(first, Note):
                return [self._tried(partial(self._store.note, first.key, first.value))]
            if isinstance(first, Cool | Thaw | Forget):
                return [self._moved(first)]
            if isinstance(first, Release):
                return self._released(first)
            if isinstance(first, Withdraw):
                return self._withdrawn(first)
            if isinstance(first, Adopt):
                return self._adopted([deed for deed in deeds if isinstance(deed, Adopt)])
            return self._applied([deed for deed in deeds if isinstance(deed, Apply)])
        finally:
            self._holdings.look()

    def _held(self, deed: Hold | Drop) -> list[GiaannError | None] | None:
        change = self._store.hold if isinstance(deed, Hold) else self._store.drop
        try:
            change(deed.shards.tolist())
        except StoreError as error:
            if not self._refused:
                self._log.warning("the disk refuses, trying again and again: %s", error)
            self._refused = True
            return None
        self._refused = False
        return [None]

    def _moved(self, deed: Cool | Thaw | Forget) -> GiaannError | None:
        """Move a shard between memory and its cold copy, or remove cold copies."""
        if isinstance(deed, Cool):
            error = self._tried(lambda: self._store.cool(deed.shard, deed.now))
        elif isinstance(deed, Thaw):
            error = self._tried(lambda: self._store.thaw(deed.shard))
        else:
            error = self._tried(lambda: self._store.cold.forget(deed.shards.tolist()))
        if error:
            self._log.warning("a cold copy could not be moved, trying again later: %s", error)
        return error

    def _released(self, deed: Release) -> list[GiaannError | None]:
        each = [
            (job, chunks.of(job), shards.tolist())
            for shards, chunks in deed.parts
            for job in chunks
        ]
        for one in each:
            error = self._tried(partial(self._store.release, *one))
            if error:
                self._log.warning("deltas that everybody has are still kept: %s", error)
        return [None]

    def _withdrawn(self, deed: Withdraw) -> list[GiaannError | None]:
        updates = deed.next(self._store)
        errors = self._together(updates, self._store.apply)
        for update, error in zip(updates, errors, strict=True):
            number = update.chunk - WITHDRAWN
            if error:
                self._log.warning("chunk %d of a disowned peer is still here: %s", number, error)
        self.withdrawn += errors.count(None)
        if error := self._tried(lambda: deed.done(self._store)):
            self._log.warning("what is withdrawn here alone may be offered to others: %s", error)
        return [None]

    def _applied(self, deeds: Sequence[Apply]) -> list[GiaannError | None]:
        unpacked = self._unpacked(deeds)
        errors = self._together(unpacked, lambda some: self._store.apply(list(chain(*some))))
        told = zip(deeds, errors, strict=False)
        self.applied += sum(len(deed.updates) for deed, error in told if error is None)
        return errors

    def _unpacked(self, deeds: Sequence[Apply]) -> list[list[Update] | GiaannError]:
        """Unpack updates for at most half of `group_seconds`, but at least one."""
        unpacked, until = [], self._clock() + self._options.group_seconds / 2
        for deed in deeds:
            unpacked.append(_or_error(deed.unpacked))
            if self._clock() >= until:
                break
        return unpacked

    def _adopted(self, deeds: Sequence[Adopt]) -> list[GiaannError | None]:
        unpacked = [_or_error(deed.content) for deed in deeds]
        return self._together(unpacked, lambda contents: self._store.adopt(*contents))

    def _together(
        self, unpacked: Sequence[T | GiaannError], change: Callable[[list[T]], object]
    ) -> list[GiaannError | None]:
        """Apply everything that could be unpacked as one group; if that fails, each alone."""
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
        """Change the store; return the error, if any. A store closed to all changes raises."""
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
        if self._snapshot is None and self._store.snapshot_due:
            self._snapshot = asyncio.get_running_loop().create_task(self._take_snapshot())

    async def _take_snapshot(self) -> None:
        error = await self._in_thread(self._beside, lambda: self._tried(self._store.snapshot))
        if error is None:
            self.snapshots += 1
            return
        self._log.warning("no snapshot was made, trying again later: %s", error)
        await asyncio.sleep(self._options.snapshot_retry)


def _or_error(unpack: Callable[[], T]) -> T | GiaannError:
    try:
        return unpack()
    except GiaannError as error:
        return error


def _weight(deed: Deed) -> int:
    """Return a change's weight within its group: bytes of updates, or connections of shards."""
    return deed.arrived.manifest.connections if isinstance(deed, Adopt) else _size(deed)


def _size(deed: Deed) -> int:
    return sum(len(update.parcel) for update in deed.updates) if isinstance(deed, Apply) else 0
