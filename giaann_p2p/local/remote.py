"""A client of a swarm on this machine: it sends requests to the swarm's supervisor."""

import os
import select
import signal
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from giaann_p2p.errors import StoreError, UsageError
from giaann_p2p.local.control import (
    Add,
    Answer,
    Down,
    Kill,
    Look,
    Question,
    Restart,
    read_answer,
    server_of,
)
from giaann_p2p.local.errors import LocalSwarmError, NotRunningError
from giaann_p2p.local.folder import Folder

ANSWERS_WITHIN = 120.0
"""Timeout of a request, in seconds. A restart has the peers' grace period in addition, because it
waits for the peer to shut down."""
_LONGEST = 1e6
"""Maximum timeout in seconds, because sockets do not take any number."""
_FOREVER = float("inf")


class Remote:
    """Controls the swarm that runs in a folder, through its supervisor.

    Each method raises UsageError if the request is invalid, and NotRunningError if no swarm runs in
    the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Folder(folder)

    def look(self, memory: bool = False) -> Answer:
        """Return the state of the swarm; with `memory`, also the memory that each peer uses."""
        return self._ask(Look(memory))

    def add(self, role: str, count: int = 1) -> list[str]:
        """Start `count` more peers of a role, and return their names."""
        return self._ask(Add(role, count)).started

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a peer a signal; KILL, STOP and CONT also reach all processes that it started."""
        self._ask(Kill(name, number))

    def stop(self, name: str) -> None:
        """Freeze a peer, and all processes that it started (SIGSTOP)."""
        self.kill(name, signal.SIGSTOP)

    def cont(self, name: str) -> None:
        """Let a frozen peer continue (SIGCONT)."""
        self.kill(name, signal.SIGCONT)

    def restart(self, name: str) -> None:
        """Restart a peer with the same data and ports; if it runs, it is ended first."""
        record = None
        with suppress(StoreError):  # the supervisor knows it without the file
            record = self.folder.record()
        grace = 0.0 if record is None else record.spec.grace
        self._ask(Restart(name), ANSWERS_WITHIN + grace)

    def down(self, now: bool = False, within: float = _FOREVER) -> None:
        """End the swarm; return when no process of it is left. `now`: kill instead of waiting."""
        supervisor = self.ask_down(now)
        try:
            if not wait_for(supervisor, within):
                raise LocalSwarmError(f"the swarm has not ended in {within:g} s")
        finally:
            os.close(supervisor)

    def ask_down(self, now: bool = False) -> int:
        """Begin to end the swarm; return a pidfd of the supervisor, which ends last."""
        supervisor = os.pidfd_open(self.look().pid)
        try:
            self._ask(Down(now))
        except BaseException:
            os.close(supervisor)
            raise
        return supervisor

    def _ask(self, question: Question, within: float = ANSWERS_WITHIN) -> Answer:
        data = b""
        with self._connected() as line, suppress(ConnectionError):
            line.settimeout(min(within, _LONGEST))
            try:
                line.sendall(msgspec.json.encode(question) + b"\n")
                with line.makefile("rb") as file:
                    data = file.readline()
            except TimeoutError:
                raise _silent(server_of(line), within) from None
        if not data:
            raise NotRunningError(f"the swarm in {self.folder.path} has just ended")
        answer = read_answer(data)
        if answer.error:
            raise (UsageError if answer.usage else LocalSwarmError)(answer.error)
        return answer

    def _connected(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(ANSWERS_WITHIN)
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
                f"cannot connect to the swarm in {self.folder.path}: {error.strerror or error}"
            ) from None
        return line


def _silent(supervisor: int, within: float) -> LocalSwarmError:
    """Return an error about a supervisor that is stopped, or very slow."""
    return LocalSwarmError(
        f"the supervisor (process {supervisor}) has not answered within {within:g} s; if it is"
        f" stopped, kill -CONT {supervisor} lets it continue; kill -KILL {supervisor} ends the"
        " swarm"
    )


def wait_for(process: int, within: float) -> bool:
    """Wait up to `within` seconds for a process, given as a pidfd; return whether it ended."""
    waiting = select.poll()
    waiting.register(process, select.POLLIN)
    return bool(waiting.poll(None if within == _FOREVER else within * 1000))
