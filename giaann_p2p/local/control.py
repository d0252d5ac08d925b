"""The supervisor's control protocol, over a Unix socket: JSON, one message per line.

Only the user who started the swarm may use it, and root: the socket's folder admits nobody else,
and the user of each connection is checked. Every answer has the state of the swarm, or an error.
"""

import asyncio
import os
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from giaann_p2p.errors import GiaannError, UsageError
from giaann_p2p.local.peer import View

MOST_QUESTION = 1 << 16
"""Maximum length of a request, in bytes."""
_CREDENTIALS = struct.Struct("3i")  # process, user, group


class Look(msgspec.Struct, frozen=True, tag="look"):
    """A request for the state of the swarm."""

    memory: bool = False
    """Whether to measure the memory of each peer, too; that takes some milliseconds per peer."""


class Add(msgspec.Struct, frozen=True, tag="add"):
    """A request to start more peers."""

    role: str
    count: int = 1


class Kill(msgspec.Struct, frozen=True, tag="kill"):
    """A request to send a peer a signal; KILL, STOP, CONT also reach all processes it started."""

    name: str
    number: int


class Restart(msgspec.Struct, frozen=True, tag="restart"):
    """A request to end a peer if it runs, and to start it with the same data and ports."""

    name: str


class Down(msgspec.Struct, frozen=True, tag="down"):
    """A request to end the swarm; a second one, or one with `now`, kills instead of waiting."""

    now: bool = False


Question = Look | Add | Kill | Restart | Down
read_question = msgspec.json.Decoder(Question).decode


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the swarm after a request has taken effect, or the error of the request."""

    error: str = ""
    """Why the request failed; empty on success."""
    usage: bool = False
    """Whether the error is a mistake in the request."""
    link: str = ""
    """The swarm's join link; empty until the first peer has reported it."""
    pid: int = 0
    """The supervisor's process id."""
    peers: list[View] = []
    started: list[str] = []
    """The names of the peers that an `Add` has started."""


read_answer = msgspec.json.Decoder(Answer).decode


class Counter:
    """The server of the control socket: it answers each request by calling `answer`."""

    def __init__(self, answer: Callable[[Question], Awaitable[Answer]]) -> None:
        self._answer = answer
        self._serving: set[asyncio.Task[None]] = set()

    async def open(self, path: Path) -> None:
        """Start to listen on a socket at `path`."""
        door = _door(path)
        self._server = await asyncio.start_unix_server(self._serve, sock=door, limit=MOST_QUESTION)

    async def close(self) -> None:
        """Stop listening and end all connections; answers already written are still sent."""
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)
        try:
            if _may_ask(writer.get_extra_info("socket")):
                while line := await reader.readline():
                    writer.write(msgspec.json.encode(await self._answered(line)) + b"\n")
                    await writer.drain()
        except (OSError, ValueError, asyncio.CancelledError):
            pass  # the client left, its request is too long, or the supervisor ends
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answered(self, line: bytes) -> Answer:
        try:
            question = read_question(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Answer(error=f"invalid request: {error}", usage=True)
        try:
            return await self._answer(question)
        except GiaannError as error:
            return Answer(error=str(error), usage=isinstance(error, UsageError))
        except OSError as error:
            return Answer(error=f"the supervisor failed to carry out the request: {error}")


def _door(path: Path) -> socket.socket:
    """Bind a Unix socket that only this user can use."""
    door = socket.socket(socket.AF_UNIX)
    try:
        door.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        door.close()
        raise UsageError(f"cannot listen on the socket {path}: {error.strerror}") from None
    return door


def server_of(connection: socket.socket) -> int:
    """Return the id of the process that listens on the socket at the other end."""
    return _credentials(connection)[0]


def _may_ask(connection: socket.socket) -> bool:
    """Return whether the process at the other end belongs to this user, or to root."""
    return _credentials(connection)[1] in (os.getuid(), 0)


def _credentials(connection: socket.socket) -> tuple[int, int]:
    """Return the process and the user at the other end of a Unix socket."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(found)
    return process, user
