"""The process that peers are forked from: `python -m giaann_p2p.local.zygote FD FOLDER MODULE...`.

Importing hivemind and torch takes seconds and hundreds of megabytes. The zygote does it once, and
the peers that it forks share that memory.

- The zygote has one thread and no event loop: a fork would copy locks that other threads hold, and
  nobody would ever release the copies.
- The zygote takes orders over a socket (see `orders`), and reports what happens to the peers.
- When a peer ends, the zygote adopts the processes that the peer has started, and kills them.
- When the socket closes, the zygote kills all its descendants and ends. When the zygote is killed,
  the kernel kills its peers.

The standard library's forkserver does not suffice: it silently skips modules that cannot be
imported, does not notice that a process was stopped or continued, and adopts no orphans.
"""

import gc
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from types import FrameType

from giaann_p2p.errors import GiaannError
from giaann_p2p.local import child, linux
from giaann_p2p.local.orders import (
    Ended,
    Failed,
    Hangup,
    Line,
    Order,
    OrderRefused,
    Paused,
    Ready,
    Signal,
    Spawn,
    Spawned,
)

_OVER = (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)
_ANY = os.WEXITED | os.WSTOPPED | os.WCONTINUED | os.WNOHANG


class Zygote:
    """The process that forks peers: it obeys the supervisor, and reports what happens to peers."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._me = os.getpid()
        self._names: dict[int, str] = {}  # names of peers, by process id
        self._woken, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._told_to_end = False

    def run(self) -> None:
        """Obey orders until the socket closes or SIGTERM arrives; then kill all descendants."""
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        waiting = select.poll()
        waiting.register(self._line, select.POLLIN)
        waiting.register(self._woken, select.POLLIN)
        try:
            self._line.tell(Ready(self._me))
            while not self._told_to_end:
                ready = [number for number, _ in waiting.poll()]
                if self._woken in ready:
                    os.read(self._woken, 1 << 16)
                    self._reap()
                if self._line.fileno() in ready:
                    for order in self._line.orders():
                        self._obey(order)
        except Hangup:
            pass
        finally:
            self._kill_all()

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._told_to_end = True

    def _obey(self, order: Order) -> None:
        match order:
            case Spawn():
                self._spawn(order)
            case Signal():
                for pid, name in self._names.items():
                    if name == order.name:
                        _send(pid, order.number, order.everyone)

    def _spawn(self, peer: Spawn) -> None:
        if (threads := linux.threads()) != 1:
            self._line.tell(
                OrderRefused(
                    peer.name,
                    f"the imported modules started {threads - 1} threads, so it is unsafe to fork",
                )
            )
            return
        sys.stdout.flush()
        sys.stderr.flush()
        before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            pid = os.fork()
        except OSError as error:
            self._line.tell(OrderRefused(peer.name, f"no process can be forked: {error.strerror}"))
            return
        else:
            if not pid:
                child.become(peer, self._me, self._let_go)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._names[pid] = peer.name
        self._line.tell(Spawned(peer.name, pid))

    def _let_go(self) -> None:
        """Close the zygote's file descriptors, in a process forked from it."""
        signal.set_wakeup_fd(-1)
        self._line.close()
        os.close(self._woken)
        os.close(self._waker)

    def _reap(self) -> None:
        """Report which peers have ended, or were stopped or continued; reap ended processes."""
        while found := self._next():
            pid, status = found.si_pid, found.si_status
            name = self._names.get(pid)
            if found.si_code in _OVER:
                self._names.pop(pid, None)
                self._kill_orphans()
                if name is not None:
                    died = found.si_code != os.CLD_EXITED
                    self._line.tell(Ended(name, pid, -status if died else status))
            elif name is not None:
                self._line.tell(Paused(name, pid, found.si_code == os.CLD_STOPPED))

    @staticmethod
    def _next() -> "os.waitid_result | None":
        try:
            return os.waitid(os.P_ALL, 0, _ANY)
        except ChildProcessError:
            return None

    def _kill_orphans(self) -> None:
        """Kill adopted processes, whose parents have ended. Their children are adopted next."""
        for pid in linux.children(self._me):
            if pid not in self._names:
                _send(pid, signal.SIGKILL, everyone=False)

    def _kill_all(self) -> None:
        """Kill all descendants; when one dies, its children become children of this process."""
        while left := linux.children(self._me):
            for pid in left:
                _send(pid, signal.SIGKILL, everyone=pid in self._names)
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)


def _send(pid: int, number: int, everyone: bool) -> None:
    with suppress(ProcessLookupError):
        if everyone:
            try:
                os.killpg(pid, number)
            except ProcessLookupError:  # it has no process group of its own yet
                os.kill(pid, number)
        else:
            os.kill(pid, number)


def prepare(modules: Iterable[str]) -> None:
    """Import the modules that peers need, so that all forked peers share their memory."""
    gc.disable()  # it would write to memory pages, which would then no longer be shared
    for module in modules:
        import_module(module)
    if program := sys.modules.get("giaann_p2p.net.hive.program"):
        with suppress(GiaannError):  # each peer that needs the program reports the error
            program.known_program()
    gc.collect()
    gc.freeze()
    gc.enable()


def main() -> int:
    """Run the zygote; return the exit code."""
    number, _folder, *modules = sys.argv[1:]  # the folder is an argument so that ps shows it
    line = Line(socket.socket(fileno=int(number)))
    linux.adopt_orphans()
    linux.call_it("giaann-zygote")
    try:
        prepare(modules)
    except Exception as error:  # noqa: BLE001  (a module may raise anything)
        traceback.print_exc()  # into the log; the supervisor gets the last line
        with suppress(Hangup):
            line.tell(Failed(f"{type(error).__name__}: {error}"))
        return 1
    Zygote(line).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
