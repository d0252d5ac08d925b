"""Virtual time, and an event loop that runs on it: time jumps to the next event.

Hours of virtual time pass in milliseconds, and a program with the same seeds always runs in the
same order. There are no sockets, pipes or signals; work for threads runs inline. When every task
waits for something that can never happen, the loop raises Deadlock instead of hanging.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

from giaann_p2p.errors import GiaannError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Event = Callable[[], None]


class Deadlock(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """Every task of a virtual-time loop waits, and no event is left that could wake one."""


class Clock:
    """A queue of events on virtual time; events of the same time run first in, first out."""

    def __init__(self) -> None:
        self.now = 0.0
        """The virtual time in seconds."""
        self._events: list[tuple[float, int, Event]] = []
        self._count = 0

    def at(self, when: float, event: Event) -> None:
        """Schedule an event at a virtual time in seconds, or now if that time has passed."""
        self._count += 1
        heapq.heappush(self._events, (max(when, self.now), self._count, event))

    def after(self, seconds: float, event: Event) -> None:
        """Schedule an event after some seconds of virtual time."""
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, event))

    def run_until(self, end: float) -> None:
        """Run all events up to and including a time, and set the clock to that time."""
        events, pop = self._events, heapq.heappop
        while events and events[0][0] <= end:
            self.now, _, event = pop(events)
            event()
        self.now = end

    def step(self) -> None:
        """Run the next event, with the clock set to its time; raise Deadlock if there is none."""
        if not self._events:
            raise Deadlock("deadlock: every task waits, and no event is left that could wake one")
        self.now, _, event = heapq.heappop(self._events)
        event()


class VirtualLoop(asyncio.BaseEventLoop):
    """An asyncio event loop on virtual time, by its own clock, which starts at 0, or by another."""

    _ready: deque[asyncio.Handle]
    """The callbacks that are due now; asyncio's base class appends to it."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__()
        self.clock = clock or Clock()

    def __repr__(self) -> str:
        return f"<VirtualLoop: {self.time():.3f} s>"

    def __del__(self) -> None:
        """Suppress asyncio's warning about unclosed loops: this loop holds no resources."""

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self.clock.now

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule a callback; callbacks of the same time run first in, first out."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self.clock.at(when, partial(self._due, timer))
        return timer

    def run_in_executor(
        self, executor: object, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """Run work meant for a thread inline, so that the order of events is always the same."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  (the waiter gets any error)
            future.set_exception(error)
        return future

    def _due(self, timer: asyncio.TimerHandle) -> None:
        self._ready.append(timer)

    def _run_once(self) -> None:
        """Run the callbacks that are due now, or else advance the clock to its next event."""
        if self._ready:
            self.clock.run_until(self.clock.now)
        else:
            self.clock.step()
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle.cancelled():
                handle._run()

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """Do nothing, because a cancelled timer stays queued and is skipped when it is due."""

    def _write_to_self(self) -> None:
        """Do nothing, because no other thread ever has to wake this loop."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time and return its result; cancel its unfinished tasks."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
