"""A pool of threads that never keep the process from ending.

At its end, the interpreter waits for the threads of a ThreadPoolExecutor, however long they take.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

_T = TypeVar("_T")


class _Task(NamedTuple):
    """A function to call, and the future that gets its result."""

    future: "Future[Any]"
    work: Callable[[], Any]


class DaemonPool(Executor):
    """A fixed number of daemon threads, which start with the first task."""

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._open: set[Future[Any]] = set()
        """The futures of tasks that have not ended; all threads use it, so `_lock` guards it."""
        self._lock = threading.Lock()
        self._begun = self._closed = False

    def submit(
        self,
        work: Callable[..., _T],
        /,
        *given: Any,  # noqa: ANN401  (whatever the function takes)
        **named: Any,  # noqa: ANN401  (whatever the function takes)
    ) -> "Future[_T]":
        """Have a thread call a function; RuntimeError after the end."""
        future: Future[_T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("the threads have ended")
            if not self._begun:
                self._begin()
            self._open.add(future)
        future.add_done_callback(self._ended)
        self._queue.put(_Task(future, lambda: work(*given, **named)))
        return future

    def end(self, within: float) -> bool:
        """Cancel waiting tasks; wait for the others, and return whether they ended in time."""
        with self._lock:
            self._closed, left = True, list(self._open)
        for _ in range(self._count if self._begun else 0):
            self._queue.put(None)
        return not wait([one for one in left if not one.cancel()], within).not_done

    def _begin(self) -> None:
        self._begun = True
        for number in range(self._count):
            name = f"{self._name}-{number}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()

    def _ended(self, future: "Future[Any]") -> None:
        with self._lock:
            self._open.discard(future)

    def _serve(self) -> None:
        while (task := self._queue.get()) is not None:
            _carry_out(task)
            del task  # a thread that waits must not keep what it was given


def _carry_out(task: _Task) -> None:
    if not task.future.set_running_or_notify_cancel():
        return
    try:
        result = task.work()
    except BaseException as error:  # noqa: BLE001  (raised where the result is awaited)
        task.future.set_exception(error)
    else:
        task.future.set_result(result)
