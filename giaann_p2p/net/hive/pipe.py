"""A connection to p2pd over a socket of this machine: what every stream to a peer runs through.

Bytes are handed on as the loop brings them, up to 256 KiB at a time and without a copy. Whoever
does not read stops the sender, and the other way round. No task belongs to a pipe.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from giaann_p2p.net.frames import Buffer

_MOST_HELD = 1 << 20
"""Bytes that wait to be read, above which nothing more is taken from the socket."""
_MOST_UNSENT = 1 << 20
"""Bytes that wait to be sent, above which a writer waits."""
_TURN = 1 << 18
_LINGER = 5.0
"""Seconds for what was written to be taken, after a close."""
_VARINT_BYTES = 5


class Pipe(asyncio.Protocol):
    """A byte stream as net/transport.py wants one, and p2pd's messages at its start."""

    def __init__(self, among: "set[Pipe]") -> None:
        self._among = among
        """All that are open: each puts itself in, and takes itself out."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._deliver: Callable[[bytes], None] | None = None
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._ended = False  # nothing more will come
        self._error: OSError | None = None
        self._stopped = False  # the socket is not read for now
        self._full = False  # the socket takes nothing for now
        self._closing = False
        self._in_a_row = 0  # bytes written since others had their turn
        self._readers: list[asyncio.Future[None]] = []
        self._writers: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        state = "over" if self._error else "ended" if self._ended else "open"
        return f"<Pipe: {state}, {self._held:,} bytes to read>"

    async def read(self) -> bytes:
        """Return what has come, at least a byte; none at the end."""
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
        """Hand over what comes from now on as soon as it comes; what has come is still to be read.

        So is the end.
        """
        self._deliver = to

    @property
    def room(self) -> bool:
        """Whether a write would not wait, nor let others have their turn."""
        return not self._full and self._in_a_row < _TURN

    def put(self, pieces: Sequence[Buffer]) -> None:
        """Send at once what is not much; only where there is room, and while no write waits."""
        if self._error is not None or self._closing:
            raise self._broken()
        transport = self._open()
        if transport.is_closing():  # it knows already what it has not told yet
            raise ConnectionResetError("it was closed")
        transport.writelines(pieces)
        self._in_a_row += sum(map(len, pieces))

    async def write(self, pieces: Sequence[Buffer]) -> None:
        """Send; return when there is room for more."""
        self.put(pieces)
        if self._in_a_row >= _TURN:
            self._in_a_row = 0
            await asyncio.sleep(0)  # or one who writes to a fast reader would keep the loop
        while self._full:
            await self._wait(self._writers)
            if self._error is not None:
                raise self._broken()

    async def message(self, most: int) -> bytes:
        """Return p2pd's next message: its length, seven bits a byte, and its bytes."""
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
        """Let what was written arrive, then end; no more is read."""
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
        # What comes must be taken, or else p2pd takes the end for a break, and drops what was sent.
        transport.write_eof()
        self._resume()
        self._timer = self._loop.call_later(_LINGER, self.abort)

    def abort(self, why: str = "this peer has ended it") -> None:
        """End at once, both ways."""
        if self._error is None:
            self._end(ConnectionAbortedError(why))
            self._among.discard(self)
            if self._transport is not None:
                self._transport.abort()

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        if self._error is not None:  # who wanted it has given up
            self._transport.abort()
            return
        self._transport.set_write_buffer_limits(high=_MOST_UNSENT)
        self._among.add(self)

    def data_received(self, data: bytes) -> None:
        """Keep what came for who reads."""
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
        """Tell who reads that this was all; what is to be sent may still go."""
        self._ended = True
        _wake(self._readers)
        return not self._closing

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all who wait."""
        self._among.discard(self)
        # What came before the end may still be read; nobody can tell an end from a break here.
        self._ended = True
        self._end(exc if isinstance(exc, OSError) else ConnectionResetError("it was closed"))

    def pause_writing(self) -> None:
        """Let writers wait."""
        self._full = True

    def resume_writing(self) -> None:
        """Let writers go on."""
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
        """Return an error of its own for each who waits."""
        if self._error is None:
            return ConnectionAbortedError("this peer has closed it")
        return type(self._error)(*self._error.args)

    def _open(self) -> asyncio.Transport:
        if self._transport is None:
            raise ConnectionAbortedError("it was never open")
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
    """Return a message and the bytes that it took, None if it is not complete."""
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
    raise ConnectionAbortedError(f"p2pd announced a message of {length:,} bytes; that cannot be")


def framed(message: bytes) -> bytes:
    """Return a message as p2pd reads it."""
    length, head = len(message), bytearray()
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return bytes(head) + message
