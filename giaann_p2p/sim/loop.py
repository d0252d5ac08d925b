"""The event loop of a simulated machine until its next crash, on the clock that all share."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from giaann_p2p.net.clock import Clock, Event, T, VirtualLoop


class MachineLoop(VirtualLoop):
    """An event loop that runs whenever an event of its machine is due.

    `happen` runs an event: now, or later if the machine is stopped, or never if it has crashed.
    """

    def __init__(self, clock: Clock, happen: Callable[[Event], None]) -> None:
        super().__init__(clock)
        self.happen = happen
        self.delay: Callable[[object], float] = lambda executor: 0.0
        """Returns the virtual seconds that work for an executor takes."""
        self.lag = 0.0
        """The virtual seconds by which the result of the current work is delayed; then 0 again."""
        self._unseen = set[asyncio.Future[Any]]()
        self._works: dict[asyncio.Future[Any], Event] = {}
        """The executors' work that is not done yet, the earliest first."""

    def do(self, event: Event) -> None:
        """Run an event, and all callbacks that become due at the same moment."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            event()
            while self._ready:
                handle = self._ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            asyncio._set_running_loop(before)

    def run_in_executor(
        self, executor: object, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """Run an executor's work in this thread, after the virtual seconds that it takes."""
        seconds = self.delay(executor)
        if not seconds:
            return super().run_in_executor(executor, func, *args)
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            del self._works[future]
            try:
                seen = partial(future.set_result, func(*args))
            except Exception as error:  # noqa: BLE001  (the waiter gets any error)
                seen = partial(future.set_exception, error)
            lag, self.lag = self.lag, 0.0
            if lag:
                self._unseen.add(future)
                self.call_later(lag, lambda: self._see(future, seen))
            else:
                seen()

        self._works[future] = work
        self.call_later(seconds, work)
        return future

    def _see(self, future: asyncio.Future[Any], seen: Event) -> None:
        self._unseen.remove(future)
        seen()

    def next_work(self) -> Event | None:
        """Return the oldest work of an executor that is not done yet, or None."""
        return next(iter(self._works.values()), None)

    def end(self) -> None:
        """Cancel all tasks and let them end; RuntimeError if one does not."""
        for future in [*self._works, *self._unseen]:
            future.cancel()
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        self.do(lambda: None)
        if left := [task for task in tasks if not task.done()]:
            raise RuntimeError(f"tasks of a dead machine did not end: {left}")

    def _due(self, timer: asyncio.TimerHandle) -> None:
        if not timer.cancelled():
            self.happen(partial(self._ring, timer))

    def _ring(self, timer: asyncio.TimerHandle) -> None:
        if not timer.cancelled():  # perhaps it was cancelled while the machine was stopped
            self.do(timer._run)
