"""An event loop in a thread of its own, so that synchronous callers can run coroutines.

A call blocks until its coroutine has ended. If the caller is interrupted meanwhile, for example by
Ctrl-C, the coroutine is cancelled, and has ended before the interrupt reaches the caller. anyio's
portal does not ensure that: it cancels a future and returns while the coroutine still runs.
"""

import asyncio
import threading
from collections.abc import AsyncIterable, Callable, Coroutine, Generator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import uvloop

from giaann_p2p.errors import UsageError

T = TypeVar("T")
_NOTICED_WITHIN = 0.5
"""Longest wait at a time, in seconds: a signal that comes just before a wait is noticed after it.
Python runs the handlers of signals between instructions, and a wait is one instruction."""
_CLOSED = "the connection to the swarm is closed; join the swarm again"


class Portal:
    """Runs coroutines, in a thread of its own, for callers in any thread. Close it at the end."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="giaann", daemon=True)
        self._closing = threading.Event()
        """Set once nothing more is begun."""
        self._lock = threading.Lock()
        """Held to begin a coroutine, so that `close` cancels all that were begun before it."""
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; return its result, or raise its exception."""
        begun = self._begun(work)
        try:
            while not begun.over.wait(_NOTICED_WITHIN):
                pass
        finally:
            begun.end()
        return begun.result()

    def iterate(self, items: AsyncIterable[T]) -> Generator[T, None, None]:
        """Iterate over asynchronous items; closing the generator early cancels their source."""
        come: SimpleQueue[tuple[T] | None] = SimpleQueue()

        async def pump() -> None:
            async for item in items:
                come.put((item,))

        begun = self._begun(pump(), lambda: come.put(None))
        try:
            while one := _next(come):
                yield one[0]
        finally:
            begun.end()
        begun.result()

    def close(self) -> None:
        """Cancel all coroutines, wait for them to end, and end the thread.

        Callers that wait for a coroutine in other threads get a UsageError.
        """
        with self._lock:
            if self._closing.is_set():
                return
            self._closing.set()
        asyncio.run_coroutine_threadsafe(_ended_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _begun(
        self, work: Coroutine[Any, Any, T], then: Callable[[], None] = lambda: None
    ) -> "_Begun[T]":
        with self._lock:
            if not self._closing.is_set():
                return _Begun(self._loop, self._closing, work, then)
        work.close()
        raise UsageError(_CLOSED)


class _Begun(Generic[T]):
    """A coroutine that runs in the thread of a portal's event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        closing: threading.Event,
        work: Coroutine[Any, Any, T],
        then: Callable[[], None],
    ) -> None:
        self.over = threading.Event()
        self._loop, self._closing = loop, closing

        def begin() -> None:
            self._task = loop.create_task(work)
            self._task.add_done_callback(ended)

        def ended(_: asyncio.Task[T]) -> None:
            self.over.set()
            then()

        loop.call_soon_threadsafe(begin)

    def end(self) -> None:
        """Cancel the coroutine if it still runs, and wait until it has ended."""
        if not self.over.is_set():
            with suppress(RuntimeError):  # the loop was closed meanwhile, after all had ended
                self._loop.call_soon_threadsafe(self._cancel)
            self.over.wait()

    def result(self) -> T:
        """Return the result of the ended coroutine, or raise its exception."""
        try:
            return self._task.result()
        except asyncio.CancelledError:
            if self._closing.is_set():
                raise UsageError(_CLOSED) from None
            raise

    def _cancel(self) -> None:
        self._task.cancel()


async def _ended_all() -> None:
    """Cancel all other tasks of the loop, and wait until they have ended."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


def _next(come: "SimpleQueue[tuple[T] | None]") -> tuple[T] | None:
    """Wait for the next item, and return it in a tuple; None at the end."""
    while True:
        with suppress(Empty):
            return come.get(timeout=_NOTICED_WITHIN)
