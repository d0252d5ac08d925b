"""Runs a peer's tasks as one unit: if one fails, or the peer is told to end, all of them end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

Part = Coroutine[Any, Any, None]
"""One of a peer's tasks, such as its periodic tick."""
Last = Callable[[], Awaitable[None]]
"""Cleanup that runs after all of a peer's tasks have ended."""


class Lifetime:
    """The tasks of a running peer. An unexpected error in one ends all, and `run` raises it."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()
        self._fault: BaseException | None = None
        self._over, self._ended = asyncio.Event(), asyncio.Event()
        self._ended.set()  # `run` clears it

    def __repr__(self) -> str:
        return f"<Lifetime: {len(self._tasks)} parts{', over' if self.is_over else ''}>"

    @property
    def is_over(self) -> bool:
        """Whether the peer is ending or has ended."""
        return self._over.is_set()

    @property
    def has_failed(self) -> bool:
        """Whether the peer ends because of an unexpected error."""
        return self._fault is not None

    async def run(self, parts: Sequence[Part], last: Last | None = None) -> None:
        """Run all parts until one fails or the peer is told to end; then cancel them, await `last`.

        Raise the unexpected error that ended the peer, if there was one.
        """
        self._ended.clear()
        for part in parts:
            self.start(part)
        try:
            await self._over.wait()
        finally:
            await self._end(last)
        if self._fault is not None:
            raise self._fault

    def start(self, part: Part) -> asyncio.Task[None]:
        """Start one more part as a task; an unexpected error in it ends all parts."""

        def over(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self.fail(error)

        task = asyncio.get_running_loop().create_task(part)
        self._tasks.add(task)
        task.add_done_callback(over)
        return task

    def fail(self, error: BaseException) -> None:
        """End all parts because of an unexpected error; `run` raises the first such error."""
        if self._fault is None:
            self._fault = error
            self._log.error("this peer has to end: %s", str(error) or repr(error))
        self._over.set()

    def end(self) -> None:
        """Tell all parts to end, without waiting for them."""
        self._over.set()

    async def close(self) -> None:
        """End all parts; return when they and the cleanup in `last` are done."""
        self._over.set()
        await self._ended.wait()

    async def _end(self, last: Last | None) -> None:
        self._over.set()
        tasks = list(self._tasks)
        try:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            try:
                if last:
                    await last()
            finally:  # `close` waits for this, even if `last` fails
                self._ended.set()
