"""The parts of a peer live together: when one fails, or it is told to end, all of them end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

Part = Coroutine[Any, Any, None]
Last = Callable[[], Awaitable[None]]


class Lifetime:
    """From `run` to its end. An error that nobody planned for ends it, and is raised by `run`."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()
        self._fault: BaseException | None = None
        self._over, self._ended = asyncio.Event(), asyncio.Event()
        self._ended.set()  # until it runs

    def __repr__(self) -> str:
        return f"<Lifetime: {len(self._tasks)} parts{', over' if self.is_over else ''}>"

    @property
    def is_over(self) -> bool:
        """Whether it ends, or has ended."""
        return self._over.is_set()

    @property
    def has_failed(self) -> bool:
        """Whether it ends because something went wrong."""
        return self._fault is not None

    async def run(self, parts: Sequence[Part], last: Last | None = None) -> None:
        """Live until it is over; `last` is done when all parts have ended."""
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
        """Have one more part."""

        def over(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                self.fail(error)

        task = asyncio.get_running_loop().create_task(part)
        self._tasks.add(task)
        task.add_done_callback(over)
        return task

    def fail(self, error: BaseException) -> None:
        """End, for something is wrong that nobody planned for."""
        if self._fault is None:
            self._fault = error
            self._log.error("ends, for it cannot go on: %s", str(error) or repr(error))
        self._over.set()

    def end(self) -> None:
        """End now."""
        self._over.set()

    async def close(self) -> None:
        """End now, and return when it has ended."""
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
            finally:  # whatever goes wrong with the last words, who closes it waits for this
                self._ended.set()
