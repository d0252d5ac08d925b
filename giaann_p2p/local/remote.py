"""A client of a swarm on this machine: it sends requests to the supervisor."""

import os
import select
import signal
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.local.control import Add, Answer, Down, Kill, Look, Question, Restart, read_answer
from giaann_p2p.local.errors import LocalSwarmError, NotRunningError
from giaann_p2p.local.folder import Folder

_ANSWERS_WITHIN = 120.0
_FOREVER = float("inf")


class Remote:
    """The supervisor of the swarm in a folder.

    Each call raises UsageError if the request is invalid, and NotRunningError if no swarm runs
    there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Folder(folder)

    def look(self, memory: bool = False) -> Answer:
        """Return the state of the swarm; with `memory`, also how much memory each peer takes."""
        return self._ask(Look(memory))

    def add(self, role: str, count: int = 1) -> list[str]:
        """Start more peers, and return their names."""
        return self._ask(Add(role, count)).started

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a peer a signal; KILL, STOP and CONT also reach all that it has started."""
        self._ask(Kill(name, number))

    def stop(self, name: str) -> None:
        """Stop a peer's processes (SIGSTOP)."""
        self.kill(name, signal.SIGSTOP)

    def cont(self, name: str) -> None:
        """Continue a stopped peer (SIGCONT)."""
        self.kill(name, signal.SIGCONT)

    def restart(self, name: str) -> None:
        """End a peer if it runs, and start it with the same data and ports."""
        self._ask(Restart(name))

    def down(self, now: bool = False, within: float = _FOREVER) -> None:
        """End everything, and return when nothing is left; `now`: kill instead of waiting."""
        supervisor = self.ask_down(now)
        try:
            if not wait_for(supervisor, within):
                raise LocalSwarmError(f"the swarm has not ended in {within:g} s")
        finally:
            os.close(supervisor)

    def ask_down(self, now: bool = False) -> int:
        """Begin to end everything; return a pidfd of the supervisor, which ends last."""
        supervisor = os.pidfd_open(self.look().pid)
        try:
            self._ask(Down(now))
        except BaseException:
            os.close(supervisor)
            raise
        return supervisor

    def _ask(self, question: Question) -> Answer:
        data = b""
        with self._connected() as line, suppress(ConnectionError):
            line.sendall(msgspec.json.encode(question) + b"\n")
            with line.makefile("rb") as file:
                data = file.readline()
        if not data:
            raise NotRunningError(f"the swarm in {self.folder.path} has just ended")
        answer = read_answer(data)
        if answer.error:
            raise (UsageError if answer.usage else LocalSwarmError)(answer.error)
        return answer

    def _connected(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(_ANSWERS_WITHIN)
        try:
            line.connect(str(self.folder.socket))
        except OSError as error:
            line.close()
            if isinstance(error, FileNotFoundError | ConnectionRefusedError | NotADirectoryError):
                raise NotRunningError(
                    f"no swarm runs in {self.folder.path}; giaann swarm up --dir"
                    f" {self.folder.path} starts one"
                ) from None
            raise LocalSwarmError(
                f"the swarm in {self.folder.path} cannot be asked: {error.strerror or error}"
            ) from None
        return line


def wait_for(process: int, within: float) -> bool:
    """Wait for the end of a process, by its pidfd; return whether it has ended."""
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    return bool(waiting.poll(None if within == _FOREVER else within * 1000))
