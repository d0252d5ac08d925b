"""Worker processes that parse for this one, with results in order.

Each worker has one group at a time, or a few; it gets the next one when a result is taken, and
exits when its pipe closes. The death of a worker is reported at once. (An executor of the standard
library may hang if a worker dies while another one is starting, and its pools report no death.)
"""

import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, Generic, Self, TypeVar

from giaann_p2p.errors import WorkerError

Given = TypeVar("Given")
Made = TypeVar("Made")

_SPAWN = get_context("spawn")  # not forked: the caller may have threads (torch has)


def in_processes(
    work: Callable[[Given], Made], items: Iterator[Given], processes: int, ahead: int = 1
) -> Iterator[Made]:
    """Map `work` over items in other processes; yield the results in order.

    `work` is pickled, so it must be a function of a module. WorkerError if a process dies.
    `ahead`: the number of items that each process has at a time. With more than one, a process need
    not wait for a slower one; its results, which must be small, wait in its pipe.
    """
    with ExitStack() as started:
        busy: deque[_Worker[Given, Made]] = deque()
        for at, item in enumerate(islice(items, processes * ahead)):
            new = at < processes
            worker = started.enter_context(_Worker(work)) if new else busy[at - processes]
            worker.give(item)
            busy.append(worker)
        while busy:
            worker = busy.popleft()
            made = worker.take()
            for item in islice(items, 1):  # before the caller spends time on the result
                worker.give(item)
                busy.append(worker)
            yield made


class _Worker(Generic[Given, Made]):
    def __init__(self, work: Callable[[Given], Made]) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_serve, args=(work, theirs), daemon=True)
        with _deaf_to_ctrl_c():
            self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.terminate()
        self._process.join()

    def give(self, item: Given) -> None:
        try:
            self._pipe.send(item)
        except OSError:
            raise _death() from None

    def take(self) -> Made:
        try:
            made = self._pipe.recv()
        except (EOFError, OSError):
            raise _death() from None
        if isinstance(made, BaseException):
            raise made
        result: Made = made
        return result


def _death() -> WorkerError:
    return WorkerError(
        "a parsing process died, perhaps out of memory; what was learned until then is kept: "
        "continue with fewer processes (--workers 1)"
    )


def _serve(work: Callable[[Any], Any], pipe: "Connection[Any, Any]") -> None:
    """Do the work for each item in the worker process, until the parent closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # blocked anyway; `undisturbed` need not defer it
    try:
        while True:
            item = pipe.recv()
            try:
                pipe.send(work(item))
            except Exception as error:  # noqa: BLE001  (the parent raises it)
                pipe.send(error)
    except (EOFError, OSError):
        return


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Block SIGINT while processes start, so that only this process handles Ctrl-C.

    The new processes inherit the mask, so they never receive SIGINT; this process terminates them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
