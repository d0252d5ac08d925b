"""Whoever changes a peer's store: deed after deed, in the order they were decided, in one thread.

1. Updates that wait side by side are made durable together: one wait for the disk for many. If
   that fails, each is tried by itself, so that each has its own success or error.
2. To hold or to drop shards is tried until it is done: what was decided since builds on it.
3. What waits is bounded: see `full`. An error that nobody planned for ends all, and says so.

That no shard is dropped while something is being taken into it, `swarm.deeds` sees to.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from giaann_p2p.errors import GiaannError, StoreError, UsageError
from giaann_p2p.node.holdings import Holdings
from giaann_p2p.node.options import Options
from giaann_p2p.store.store import Store
from giaann_p2p.swarm.actions import Adopt, Apply, Drop, Hold, Release

Deed = Hold | Drop | Apply | Adopt | Release
Told = Callable[[int, GiaannError | None], None]
"""Is told the number of what is stored, or why it is not."""
T = TypeVar("T")


class Keeper:
    """See the module. `write` runs the deeds, `beside` the snapshots; None is the loop's own."""

    def __init__(
        self,
        store: Store,
        holdings: Holdings,
        told: Told,
        *,
        write: Executor | None = None,
        beside: Executor | None = None,
        options: Options | None = None,
        log: logging.Logger | None = None,
    ) -> None:
        self.groups = self.applied = self.snapshots = 0
        """So far: waits for the disk, updates, snapshots."""
        self._store, self._holdings, self._told = store, holdings, told
        self._write, self._beside = write, beside
        self._options = options or Options()
        self._log = log or logging.getLogger("giaann.node")
        self._queue: deque[Deed] = deque()
        self._doing: Sequence[Deed] = ()
        self._nbytes = 0  # of updates that wait or are being written
        self._refused = False  # by the disk, and told
        self._work, self._idle = asyncio.Event(), asyncio.Event()
        self._idle.set()
        self._snapshot: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._queue) + len(self._doing)

    def __repr__(self) -> str:
        return f"<Keeper: {len(self)} deeds wait, {self._nbytes:,} bytes>"

    @property
    def full(self) -> bool:
        """Whether so much waits that nothing from outside is to be added."""
        return self._nbytes >= self._options.queue_bytes or len(self) >= self._options.queue_deeds

    def do(self, deed: Deed) -> None:
        """Have something done after all that was given before."""
        self._queue.append(deed)
        self._nbytes += _size(deed)
        self._idle.clear()
        self._work.set()

    async def idle(self) -> None:
        """Return when nothing waits."""
        await self._idle.wait()

    async def run(self) -> None:
        """Do what is to be done, for ever; when cancelled, end after what is under way."""
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

    def _next(self) -> Sequence[Deed]:
        """Take the next deed from the queue, with those that are done together with it."""
        deeds = [self._queue.popleft()]
        size = _size(deeds[0])
        if isinstance(deeds[0], Apply):
            while self._queue and isinstance(self._queue[0], Apply):
                size += _size(self._queue[0])
                if size > self._options.group_bytes:
                    break
                deeds.append(self._queue.popleft())
        return deeds

    async def _done(self) -> bool:
        """Do what is taken; tell whether it is over, if only with an error."""
        errors = await self._in_thread(self._write, lambda: self._carry_out(self._doing))
        if errors is None:
            await asyncio.sleep(self._options.retry)
            return False
        for deed, error in zip(self._doing, errors, strict=True):
            self._nbytes -= _size(deed)
            if isinstance(deed, Apply | Adopt):
                self._told(deed.number, error)
        return True

    async def _in_thread(self, executor: Executor | None, work: Callable[[], T]) -> T:
        """Wait for a thread to do something, to its end, however often this is cancelled."""
        future = asyncio.get_running_loop().run_in_executor(executor, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({future})
            future.exception()  # it is over, and what went wrong is nobody's any more
            raise

    # In the thread.

    def _carry_out(self, deeds: Sequence[Deed]) -> list[GiaannError | None] | None:
        """Change the store; return an error, or none, for each; None at all if to be repeated."""
        try:
            first = deeds[0]
            if isinstance(first, Hold | Drop):
                return self._held(first)
            if isinstance(first, Release):
                return self._released(first)
            if isinstance(first, Adopt):
                return [self._tried(lambda: self._store.adopt(first.content))]
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

    def _released(self, deed: Release) -> list[GiaannError | None]:
        for job in deed.chunks:
            error = self._tried(partial(self._store.release, job, deed.chunks.of(job)))
            if error:
                self._log.warning("deltas that everybody has are still kept: %s", error)
        return [None]

    def _applied(self, deeds: Sequence[Apply]) -> list[GiaannError | None]:
        updates = [update for deed in deeds for update in deed.updates]
        error = self._tried(lambda: self._store.apply(updates))
        self.groups += 1
        if error is None:
            self.applied += len(updates)
        if error is None or len(deeds) == 1:
            return [error] * len(deeds)
        return [one for deed in deeds for one in self._applied([deed])]

    def _tried(self, change: Callable[[], object]) -> GiaannError | None:
        """Change the store; return why that cannot be, if it takes changes at all."""
        try:
            change()
        except UsageError as error:
            self._store.release(b"", ())  # raises if the store is closed to all
            return error
        except GiaannError as error:
            return error
        return None

    # Snapshots.

    def _begin_snapshot(self) -> None:
        if self._snapshot is not None and self._snapshot.done():
            self._snapshot.result()  # raises what nobody planned for
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


def _size(deed: Deed) -> int:
    return sum(len(update.parcel) for update in deed.updates) if isinstance(deed, Apply) else 0
