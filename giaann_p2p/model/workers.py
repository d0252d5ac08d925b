"""Processes that parse for this one, results in order.

Each has one group at a time, or a few, gets the next one when a result is taken, and dies with its
pipe. A dead one is told at once. (An executor of the standard library may hang when a worker dies
while another is being started, and no pool of it tells.)
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
    """Do work on items in other processes; iterate over what comes out, in order.

    The work is pickled, so it is a function of a module. WorkerError if a process dies.
    `ahead`: how many items each has at a time. With more than one it need not wait where another
    takes longer for its own; what it made meanwhile, which must be small, waits in its pipe.
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
            for item in islice(items, 1):  # before the caller takes its time with what was made
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
        "a parsing process died, perhaps for want of memory; what was learned until then is kept: "
        "go on with fewer processes (--workers 1)"
    )


def _serve(work: Callable[[Any], Any], pipe: "Connection[Any, Any]") -> None:
    """Work in another process, as long as there is somebody to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is deaf anyway: so nobody has to hold it back
    try:
        while True:
            item = pipe.recv()
            try:
                pipe.send(work(item))
            except Exception as error:  # noqa: BLE001  (it is the caller's to raise)
                pipe.send(error)
    except (EOFError, OSError):
        return


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Start processes that leave Ctrl-C to this one, which ends them in good order.

    They inherit the mask, so that they are deaf from their first moment on.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
