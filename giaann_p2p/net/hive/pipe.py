"""A connection to p2pd over a local socket; every stream to a peer runs through one.

Bytes are passed on as the event loop delivers them, up to 256 KiB at a time and without a copy.
Backpressure works in both directions: a reader that does not read stops the sender, and a full
socket stops the writer. A pipe has no tasks.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from giaann_p2p.net.frames import Buffer

_MOST_HELD = 1 << 20
"""The number of unread bytes at which a pipe stops reading from its socket."""
_MOST_UNSENT = 1 << 20
"""The number of unsent bytes above which a writer waits."""
_TURN = 1 << 18
"""The number of bytes written in a row at which a writer yields to other tasks."""
_LINGER = 5.0
"""The seconds after a close within which the other side must take what was written."""
_VARINT_BYTES = 5
"""The most bytes of the length in front of a message of p2pd."""


class Pipe(asyncio.Protocol):
    """A byte stream as net/transport.py defines it; p2pd's own messages may come first on it."""

    def __init__(self, among: "set[Pipe]") -> None:
        self._among = among
        """The set of open pipes to which this pipe belongs: it adds itself when open, and removes
        itself."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._deliver: Callable[[bytes], None] | None = None
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._ended = False  # nothing more will arrive
        self._error: OSError | None = None
        self._stopped = False  # reading from the socket is paused
        self._full = False  # the socket's send buffer is full
        self._closing = False
        self._in_a_row = 0  # bytes written since other tasks had their turn
        self._readers: list[asyncio.Future[None]] = []
        self._writers: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = "over" if self._error else "ended" if self._ended else "open"
        return f"<Pipe: {state}, {self._held:,} bytes to read>"

    async def read(self) -> bytes:
        """Return the bytes that have arrived, at least one; return b"" at the end of the stream."""
        while not self._chunks:
            if self._closing:
                return b""
            if self._error is not None:
                raise self._broken()
            if self._ended:
                return b""
            await self._wait(self._readers)
        data = self._chunks.popleft()
        self._held -= len(data)
        if self._stopped and self._held < _MOST_HELD // 2:
            self._resume()
        return data

    def deliver(self, to: Callable[[bytes], None]) -> None:
        """Pass incoming bytes to a callback as soon as they arrive.

        Bytes that arrived before this call, and the end of the stream, must still be fetched with
        `read`.
        """
        self._deliver = to

    @property
    def room(self) -> bool:
        """Whether `write` would return without waiting or yielding to other tasks."""
        return not self._full and self._in_a_row < _TURN

    def put(self, pieces: Sequence[Buffer]) -> None:
        """Send a few bytes without waiting; only while there is room and no `write` waits."""
        if self._error is not None or self._closing:
            raise self._broken()
        transport = self._open()
        if transport.is_closing():  # the transport closes before it calls `connection_lost`
            raise ConnectionResetError("the stream was closed")
        transport.writelines(pieces)
        self._in_a_row += sum(map(len, pieces))

    async def write(self, pieces: Sequence[Buffer]) -> None:
        """Send some pieces in order; return when there is room for more."""
        self.put(pieces)
        if self._in_a_row >= _TURN:
            self._in_a_row = 0
            await asyncio.sleep(0)  # otherwise a writer to a fast reader would hog the loop
        while self._full:
            await self._wait(self._writers)
            if self._error is not None:
                raise self._broken()

    async def message(self, most: int) -> bytes:
        """Return p2pd's next message: on the wire, a varint length and that many bytes."""
        have = bytearray()
        while (found := _message(have, most)) is None:
            data = await self.read()
            if not data:
                raise ConnectionResetError("p2pd has closed the connection")
            have += data
        body, size = found
        if size < len(have):
            self._chunks.appendleft(bytes(memoryview(have)[size:]))
            self._held += len(have) - size
        return body

    def close(self) -> None:
        """Close the pipe once the written bytes have arrived; nothing more is read."""
        if self._closing or self._error is not None:
            return
        self._closing = True
        self._chunks.clear()
        self._held = 0
        _wake(self._readers)
        transport = self._open()
        if self._ended:
            transport.close()
            return
        # Keep reading: otherwise p2pd takes the half-close for a reset, and drops what was sent.
        transport.write_eof()
        self._resume()
        self._timer = self._loop.call_later(_LINGER, self.abort)

    def abort(self, why: str = "this peer ended the stream") -> None:
        """End the pipe at once in both directions; `why` becomes the error of pending calls."""
        if self._error is None:
            self._end(ConnectionAbortedError(why))
            self._among.discard(self)
            if self._transport is not None:
                self._transport.abort()

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the event loop's transport; abort it if the caller has already given up."""
        self._transport = cast("asyncio.Transport", transport)
        if self._error is not None:  # the caller has given up
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=_MOST_UNSENT)
        self._among.add(self)

    def data_received(self, data: bytes) -> None:
        """Pass incoming bytes to the callback, or keep them for a reader."""
        if self._closing or self._error is not None:
            return
        if self._deliver is not None and not self._chunks:
            self._deliver(data)
            return
        self._chunks.append(data)
        self._held += len(data)
        if self._held >= _MOST_HELD and not self._stopped:
            self._stopped = True
            self._open().pause_reading()
        _wake(self._readers)

    def eof_received(self) -> bool:
        """Note the end of the incoming bytes; return whether the pipe stays open for writing."""
        self._ended = True
        _wake(self._readers)
        return not self._closing

    def connection_lost(self, exc: Exception | None) -> None:
        """End the pipe because its socket is closed; wake all waiting readers and writers."""
        self._among.discard(self)
        # Bytes that have arrived may still be read. A normal end and a reset look the same here.
        self._ended = True
        self._end(
            exc if isinstance(exc, OSError) else ConnectionResetError("the stream was closed")
        )

    def pause_writing(self) -> None:
        """Make writers wait, because the socket's send buffer is full."""
        self._full = True

    def resume_writing(self) -> None:
        """Wake waiting writers, because the socket's send buffer has room again."""
        self._full = False
        _wake(self._writers)

    def _end(self, error: OSError) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._error is None:
            self._error = error
        _wake(self._readers)
        _wake(self._writers)

    def _broken(self) -> OSError:
        """Return a new copy of the pipe's error, so that each waiting caller raises its own."""
        if self._error is None:
            return ConnectionAbortedError("this peer closed the stream")
        return type(self._error)(*self._error.args)

    def _open(self) -> asyncio.Transport:
        if self._transport is None:
            raise ConnectionAbortedError("the stream was never open")
        return self._transport

    def _resume(self) -> None:
        if self._stopped:
            self._stopped = False
            self._open().resume_reading()

    async def _wait(self, waiting: list[asyncio.Future[None]]) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        waiting.append(future)
        try:
            await future
        finally:
            if future in waiting:
                waiting.remove(future)


def _wake(waiting: list[asyncio.Future[None]]) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
    waiting.clear()


def _message(have: bytearray, most: int) -> tuple[bytes, int] | None:
    """Return a message and the number of bytes that it took; None if it is incomplete."""
    length = 0
    for at, byte in enumerate(have[:_VARINT_BYTES]):
        length |= (byte & 127) << 7 * at
        if byte < 128:
            if length > most:
                break
            size = at + 1 + length
            return (bytes(have[at + 1 : size]), size) if len(have) >= size else None
    else:
        if len(have) < _VARINT_BYTES:
            return None
    raise ConnectionAbortedError(f"p2pd announced a message of {length:,} bytes, which is too long")


def framed(message: bytes) -> bytes:
    """Return a message with its length in front as a varint, as p2pd reads it."""
    length, head = len(message), bytearray()
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return bytes(head) + message
