"""An event loop whose time is made up: when all wait, it is at once the time they wait for.

Hours pass in milliseconds, and the same program with the same seeds runs in the same order. No
socket, pipe or signal is there; work for threads is done on the spot. When everything waits for
what can never happen, the run ends with an error instead of hanging.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from giaann_p2p.errors import GiaannError

T = TypeVar("T")


class Deadlock(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """Every task waits, and nothing will ever wake one."""


class _Patience:
    """Stands where a loop waits for sockets: it only lets time pass."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock("every task waits, and nothing will ever wake one")
        self.now += timeout
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop; its time begins at 0."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = _Patience()

    def __repr__(self) -> str:
        return f"<VirtualLoop: {self.time():.3f} s>"

    def time(self) -> float:
        """Return the time that it is made out to be, in seconds."""
        return self._selector.now

    def run_in_executor(
        self, executor: object, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """Do a thread's work at once, so that its place in the order is always the same."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  (whatever it is, the waiter's to handle)
            future.set_exception(error)
        return future

    def _process_events(self, events: list[Any]) -> None:
        """Nothing comes from outside."""

    def _write_to_self(self) -> None:
        """Nobody waits elsewhere for this loop to wake up."""


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program in made-up time; what it leaves behind is cancelled, as asyncio.run does."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
