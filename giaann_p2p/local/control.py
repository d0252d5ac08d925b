"""The supervisor's control protocol over its socket: JSON, one message per line.

Only the owner may use it: the socket's folder admits nobody else, and the user of each connection
is checked. Every answer has the state of the swarm, or the error in the question.
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
_CREDENTIALS = struct.Struct("3i")  # process, user, group


class Look(msgspec.Struct, frozen=True, tag="look"):
    """Return the state of the swarm."""

    memory: bool = False
    """Whether to measure the memory of each peer as well, which takes some milliseconds per
    peer."""


class Add(msgspec.Struct, frozen=True, tag="add"):
    """Start more peers."""

    role: str
    count: int = 1


class Kill(msgspec.Struct, frozen=True, tag="kill"):
    """Send a peer a signal; KILL, STOP and CONT also reach all processes that it has started."""

    name: str
    number: int


class Restart(msgspec.Struct, frozen=True, tag="restart"):
    """End a peer if it runs, and start it with the same data and ports."""

    name: str


class Down(msgspec.Struct, frozen=True, tag="down"):
    """End everything; a second one, or one with `now`, kills instead of waiting."""

    now: bool = False


Question = Look | Add | Kill | Restart | Down
read_question = msgspec.json.Decoder(Question).decode


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the swarm, after the question has taken effect."""

    error: str = ""
    usage: bool = False
    """Whether the error is the client's mistake."""
    link: str = ""
    pid: int = 0
    """The supervisor's process id."""
    peers: list[View] = []
    started: list[str] = []
    """The names of peers started for this question."""


read_answer = msgspec.json.Decoder(Answer).decode


class Counter:
    """The server of the control socket."""

    def __init__(self, answer: Callable[[Question], Awaitable[Answer]]) -> None:
        self._answer = answer
        self._serving: set[asyncio.Task[None]] = set()

    async def open(self, path: Path) -> None:
        """Listen on a socket at this path."""
        door = _door(path)
        self._server = await asyncio.start_unix_server(self._serve, sock=door, limit=MOST_QUESTION)

    async def close(self) -> None:
        """Stop listening, and end all connections; answers in their buffers are still sent."""
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
            pass  # the client is gone, its question is too long, or the supervisor ends
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answered(self, line: bytes) -> Answer:
        try:
            question = read_question(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return Answer(error=f"that is not a question: {error}", usage=True)
        try:
            return await self._answer(question)
        except GiaannError as error:
            return Answer(error=str(error), usage=isinstance(error, UsageError))
        except OSError as error:
            return Answer(error=f"the supervisor could not do it: {error}")


def _door(path: Path) -> socket.socket:
    """Return a socket that only its owner can use."""
    door = socket.socket(socket.AF_UNIX)
    try:
        door.bind(str(path))
        path.chmod(0o600)
    except OSError as error:
        door.close()
        raise UsageError(f"{path} cannot be listened at: {error.strerror}") from None
    return door


def _may_ask(connection: socket.socket) -> bool:
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(found)
    return user in (os.getuid(), 0)
