"""Those who learn chunks for a compute peer, away from its event loop: processes, or a thread.

1. Parsing holds Python's lock nearly all the time: in a thread it would make each step of the event
   loop wait for milliseconds. So by default it is done in processes.
2. They are forked before there are threads and a loop, and share what is imported until then: a new
   one costs no seconds and little memory. What will be learned they are told later.
3. A text may kill whoever learns it, by using up the memory say. Each process therefore has the
   work done by a child, which it forks anew; only the chunk is lost, and why is told.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, TypeAlias

from giaann_p2p.errors import GiaannError
from giaann_p2p.node.lesson import Made, School, Task, Teach, one_thread

_WITHIN = 120.0
"""Seconds for a chunk: a thousand times what it takes."""

Line: TypeAlias = "Connection[Any, Any]"
_OURS: set[Line] = set()
"""This process's ends of the pipes to others. A fork that kept one would keep its process alive."""


class Gone(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """A process is no more, and no new one can be made."""


class Hand(Protocol):
    """Somebody who learns one chunk at a time."""

    def teach(self, teach: Teach) -> None:
        """Tell what will be learned, before anything is."""
        ...

    def learn(self, task: Task) -> Made | str:
        """Return what came of a chunk, or why nothing did; takes its time."""
        ...

    def end(self) -> None:
        """Learn no more."""
        ...


class Here:
    """This process itself: to be called in a thread."""

    def __init__(self) -> None:
        self._teach: Teach | None = None
        self._school: School | None = None

    def __repr__(self) -> str:
        return "<Here>"

    def teach(self, teach: Teach) -> None:
        """Tell what will be learned."""
        self._teach = teach

    def learn(self, task: Task) -> Made | str:
        """Learn a chunk."""
        try:
            if self._school is None:
                if self._teach is None:
                    return "nobody has said what is to be learned"
                self._school = self._teach()
            return self._school.learn(task)
        except Exception as error:  # noqa: BLE001  (whatever a stranger's text brings about)
            return f"{type(error).__name__}: {error}"

    def end(self) -> None:
        """Forget all."""
        self._school = None


class Beside:
    """Another process, forked when this is made: see rule 2."""

    def __init__(self, within: float = _WITHIN) -> None:
        self._line, theirs = Pipe()
        _OURS.add(self._line)
        self._pid = _forked(lambda: _guard(theirs, within))
        theirs.close()

    def __repr__(self) -> str:
        return f"<Beside: process {self._pid}>"

    def teach(self, teach: Teach) -> None:
        """Tell what will be learned."""
        self._ask(teach)

    def learn(self, task: Task) -> Made | str:
        """Have a chunk learned; Gone if there is nobody to learn it."""
        self._ask(task)
        try:
            made: Made | str = self._line.recv()
        except (EOFError, OSError):
            raise Gone("a process that parses has ended") from None
        return made

    def end(self) -> None:
        """End it."""
        _OURS.discard(self._line)
        self._line.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)

    def _ask(self, what: object) -> None:
        try:
            self._line.send(what)
        except OSError:
            raise Gone("a process that parses has ended") from None


def hands(processes: int) -> list[Hand]:
    """Return so many processes, or with 0 this one itself."""
    return [Beside() for _ in range(processes)] if processes else [Here()]


def _guard(line: Line, within: float) -> None:
    """Have work done by a child, until there is nobody to work for."""
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
    def __init__(self, teach: Teach, line: Line) -> None:
        self._line, theirs = Pipe()
        self._pid = _forked(lambda: _work(teach, theirs), self._line, line)
        theirs.close()
        self.lives = True

    def do(self, task: bytes, line: Line, within: float) -> bool:
        """Pass a task on, and what comes of it back; tell whether somebody still waits for it."""
        try:
            self._line.send_bytes(task)
            ready = wait([self._line, line], within)
            if line in ready:
                return False
            if ready:
                line.send_bytes(self._line.recv_bytes())
                return True
            why = f"it took more than {within:g} s"
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
        """Return what is known of a child's death."""
        with suppress(ChildProcessError):
            _, status = os.waitpid(self._pid, 0)
            if os.WIFSIGNALED(status):
                number = os.WTERMSIG(status)
                memory = ", perhaps for want of memory" if number == signal.SIGKILL else ""
                return f" of signal {number}{memory}"
        return ""


def _work(teach: Teach, line: Line) -> None:
    """Learn, as long as there is somebody to learn for."""
    one_thread()
    here = Here()
    here.teach(teach)
    with suppress(EOFError, OSError):
        while True:
            line.send(here.learn(line.recv()))


def _forked(body: Callable[[], None], *others: Line) -> int:
    """Run something in a child, without the ends of pipes that are not its own."""
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        return pid
    try:
        # Ctrl-C and a drain are for the peer, which still needs what is being learned.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        for line in (*others, *_OURS):
            line.close()
        _OURS.clear()
        body()
    except BaseException as error:  # noqa: BLE001  (nothing may return into the parent's program)
        with suppress(OSError):
            os.write(2, f"a process that parses ends: {error!r}\n".encode())
    finally:
        os._exit(0)
