"""Workers that learn chunks for a compute peer off its event loop: processes, or a thread.

1. Parsing holds Python's GIL nearly all the time: in a thread, parsing would delay each step of the
   event loop by milliseconds. So by default it runs in processes.
2. The processes are forked before there are threads, an event loop or CUDA. They share everything
   that was imported by then, so a new process takes little time and memory. They receive the
   factory of their learner (`Teach`) later. The learner's device is first used in the process that
   learns: CUDA cannot be used in a process forked from one that has used it.
3. A text may kill the process that learns it, for example by exhausting memory. So each worker
   process is only a guard: a child process does the work, and if the child dies, the guard forks a
   new one. Only the chunk is lost, and the reason is reported.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, TypeAlias

import torch

from giaann_p2p.errors import GiaannError
from giaann_p2p.node.training.learner import Learner, Made, Task, Teach, one_thread

_WITHIN = 120.0
"""Timeout of learning one chunk, in seconds: a thousand times the usual duration."""

Line: TypeAlias = "Connection[Any, Any]"
"""One end of a pipe between two processes."""
_OURS: set[Line] = set()
"""This process's ends of the pipes to workers. A forked child closes its copies, because a copy
left open would keep the worker at the other end alive."""


class WorkerGone(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """The guard process of a learn worker has died, and no new one can be forked."""


class LearnWorker(Protocol):
    """Learns one chunk at a time; its methods block."""

    def teach(self, teach: Teach) -> None:
        """Set the factory of the learner, before the first call of `learn`."""
        ...

    def learn(self, task: Task) -> Made | str:
        """Return a chunk's result, or the reason why it could not be learned."""
        ...

    def end(self) -> None:
        """End the learn worker and free what it holds."""
        ...


class ThreadWorker:
    """A learn worker within this process; its methods block, so call them in a thread."""

    def __init__(self) -> None:
        self._teach: Teach | None = None
        self._school: Learner | None = None

    def __repr__(self) -> str:
        return "<ThreadWorker>"

    def teach(self, teach: Teach) -> None:
        """Set the factory of the learner."""
        self._teach = teach

    def learn(self, task: Task) -> Made | str:
        """Learn a chunk; the first call makes the learner, which takes longer."""
        try:
            if self._school is None:
                if self._teach is None:
                    return "this worker has no learner: `teach` was not called"
                self._school = self._teach()
            return self._school.learn(task)
        except Exception as error:  # noqa: BLE001  (a stranger's text may cause any error)
            return f"{type(error).__name__}: {error}"

    def end(self) -> None:
        """Drop the learner, to free its memory."""
        self._school = None


class ForkedWorker:
    """A learn worker in a process of its own, forked when this object is constructed.

    `within` is the timeout of one chunk, in seconds.
    """

    def __init__(self, within: float = _WITHIN) -> None:
        self._line, theirs = Pipe()
        _OURS.add(self._line)
        self._pid = _forked(lambda: _guard(theirs, within))
        theirs.close()

    def __repr__(self) -> str:
        return f"<ForkedWorker: process {self._pid}>"

    def teach(self, teach: Teach) -> None:
        """Send the factory of the learner to the worker process."""
        self._ask(teach)

    def learn(self, task: Task) -> Made | str:
        """Have a chunk learned in the worker process; WorkerGone if that process has died."""
        self._ask(task)
        try:
            made: Made | str = self._line.recv()
        except (EOFError, OSError):
            raise WorkerGone("a worker process has ended") from None
        return made

    def end(self) -> None:
        """End the worker process, and wait until it has ended."""
        _OURS.discard(self._line)
        self._line.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _ask(self, what: object) -> None:
        try:
            self._line.send(what)
        except OSError:
            raise WorkerGone("a worker process has ended") from None


def learn_workers(processes: int) -> list[LearnWorker]:
    """Return `processes` learn workers, each in its own process; for 0, one within this process.

    If this process has used CUDA, the result is always one within it, because a process forked from
    it could not use CUDA.
    """
    if not processes or torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return [ThreadWorker()]
    return [ForkedWorker() for _ in range(processes)]


def _guard(line: Line, within: float) -> None:
    """Pass tasks from `line` to a child process, and replace the child if it dies."""
    with suppress(EOFError, OSError):
        teach: Teach = line.recv()
        child = _Child(teach, line)
        try:
            while True:
                if not wait([line], None):
                    continue
                task = line.recv_bytes()
                if not child.lives:
                    child.end()
                    child = _Child(teach, line)
                if not child.do(task, line, within):
                    break
        finally:
            child.end()


class _Child:
    """The child process of a guard: it learns chunks, and a bad chunk may kill it."""

    def __init__(self, teach: Teach, line: Line) -> None:
        self._line, theirs = Pipe()
        self._pid = _forked(lambda: _work(teach, theirs), self._line, line)
        theirs.close()
        self.lives = True

    def do(self, task: bytes, line: Line, within: float) -> bool:
        """Pass a task to the child, and its result to `line`; return False if `line` has closed."""
        try:
            self._line.send_bytes(task)
            ready = wait([self._line, line], within)
            if line in ready:
                return False
            if ready:
                line.send_bytes(self._line.recv_bytes())
                return True
            why = f"learning it took more than {within:g} s"
        except (EOFError, BrokenPipeError, ConnectionResetError):
            why = f"the process that parsed it died{self._cause()}"
        self.lives = False
        line.send(why)
        return True

    def end(self) -> None:
        self._line.close()
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)

    def _cause(self) -> str:
        """Return the signal that killed the child process, in words; empty if none did."""
        with suppress(ChildProcessError):
            _, status = os.waitpid(self._pid, 0)
            if os.WIFSIGNALED(status):
                number = os.WTERMSIG(status)
                memory = ", perhaps because memory ran out" if number == signal.SIGKILL else ""
                return f" of signal {number}{memory}"
        return ""


def _work(teach: Teach, line: Line) -> None:
    """Learn the chunks that arrive on `line`, until its other end closes."""
    one_thread()
    here = ThreadWorker()
    here.teach(teach)
    with suppress(EOFError, OSError):
        while True:
            line.send(here.learn(line.recv()))


def _forked(body: Callable[[], None], *others: Line) -> int:
    """Fork a child that runs `body` with the parent's pipe ends closed; return the child's pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        return pid
    try:
        # Ctrl-C and SIGTERM are for the parent to handle: it still needs the chunk being learned.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        for line in (*others, *_OURS):
            line.close()
        _OURS.clear()
        body()
    except BaseException as error:  # noqa: BLE001  (a child must not return into the parent's code)
        with suppress(OSError):
            os.write(2, f"a worker process ends: {error!r}\n".encode())
    finally:
        os._exit(0)
