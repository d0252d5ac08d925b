"""A stranger's libp2p connection: multistream, Noise, Yamux, and streams that it need not read."""

import asyncio
import struct
from contextlib import suppress

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.benchmarks.p2pd_flood.noise import (
    MOST_SEALED,
    Cipher,
    handshake,
    read_frame,
    send_frame,
)

_SELECT, _NOISE, _YAMUX = "/multistream/1.0.0", "/noise", "/yamux/1.0.0"
_DATA, _WINDOW, _PING, _BYE = range(4)
_SYN, _ACK, _FIN, _RST = 1, 2, 4, 8
_FIRST_WINDOW = 1 << 18
_HEADER = struct.Struct(">BBHII")


def line(text: str) -> bytes:
    """Return a line of multistream."""
    return varint(len(text) + 1) + text.encode() + b"\n"


def varint(number: int) -> bytes:
    """Return a number as protobuf and multistream write it."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


class Connection:
    """One connection to a p2pd; made by `dialled`."""

    def __init__(
        self,
        identity: Ed25519PrivateKey,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.identity = identity
        self._reader, self._writer = reader, writer
        self._out: Cipher
        self._back: Cipher
        self._rest = b""
        self._last = -1
        self._windows: dict[int, int] = {}
        self._room = asyncio.Event()
        self.heard: dict[int, bytearray] = {}
        """By stream, what came of those that somebody reads."""
        self.news = asyncio.Event()
        self._reading: asyncio.Task[None]

    @classmethod
    async def dialled(
        cls, host: str, port: int, identity: Ed25519PrivateKey | None = None, within: float = 15.0
    ) -> "Connection":
        """Connect as a new peer, or as this one; OSError if that fails."""
        reader, writer = await asyncio.open_connection(host, port)
        made = cls(identity or Ed25519PrivateKey.generate(), reader, writer)
        try:
            async with asyncio.timeout(within):
                await made._secure()
        except (asyncio.IncompleteReadError, TimeoutError) as error:
            writer.close()
            raise ConnectionAbortedError(f"no connection: {error!r}") from None
        made._reading = asyncio.create_task(made._read())
        return made

    @property
    def is_open(self) -> bool:
        """Whether the other side still holds it."""
        return not self._reading.done()

    async def close(self) -> None:
        """Break it off."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def open(self, protocol: str, data: bytes = b"", *, read: bool = False) -> int:
        """Open a stream, say for which protocol without waiting, and write what fits."""
        self._last += 2
        stream, self._windows[self._last] = self._last, _FIRST_WINDOW
        if read:
            self.heard[stream] = bytearray()
        spoken = line(_SELECT) + (line(protocol) if protocol else b"")
        self._frames(_header(_WINDOW, _SYN, stream, 0))
        await self.write(stream, spoken + data)
        return stream

    async def write(self, stream: int, data: bytes) -> None:
        """Write to a stream, as far as the other side's window allows without waiting."""
        data = data[: self._windows.get(stream, 0)]
        self._windows[stream] = self._windows.get(stream, 0) - len(data)
        for at in range(0, len(data), 1 << 15):
            part = data[at : at + (1 << 15)]
            self._frames(_header(_DATA, 0, stream, len(part)) + part)
        await self._writer.drain()

    def window(self, stream: int) -> int:
        """Return how many bytes the other side would take now."""
        return self._windows.get(stream, 0)

    async def finish(self, stream: int, *, reset: bool = False) -> None:
        """End a stream."""
        self._frames(_header(_WINDOW, _RST if reset else _FIN, stream, 0))
        self._forget(stream)
        await self._writer.drain()

    async def _secure(self) -> None:
        self._writer.write(line(_SELECT) + line(_NOISE))
        await self._agreed(_NOISE)
        self._out, self._back = await handshake(self._reader, self._writer, self.identity)
        self._frames(line(_SELECT) + line(_YAMUX))
        for wanted in (_SELECT, _YAMUX):
            if await self._exactly(len(line(wanted))) != line(wanted):
                raise ConnectionAbortedError("the other side has no Yamux")

    async def _agreed(self, protocol: str) -> None:
        for wanted in (_SELECT, protocol):
            if await self._reader.readexactly(len(line(wanted))) != line(wanted):
                raise ConnectionAbortedError(f"the other side has no {protocol}")

    def _frames(self, data: bytes) -> None:
        for at in range(0, len(data), MOST_SEALED):
            send_frame(self._writer, self._out.seal(data[at : at + MOST_SEALED]))

    async def _exactly(self, count: int) -> bytes:
        while len(self._rest) < count:
            self._rest += self._back.open(await read_frame(self._reader))
        found, self._rest = self._rest[:count], self._rest[count:]
        return found

    async def _read(self) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                _, kind, flags, stream, length = _HEADER.unpack(await self._exactly(12))
                if kind == _DATA:
                    data = await self._exactly(length)
                    if stream in self.heard:
                        self.heard[stream] += data
                        self._frames(_header(_WINDOW, 0, stream, length))
                elif kind == _WINDOW:
                    self._windows[stream] = self._windows.get(stream, 0) + length
                elif kind == _PING and flags & _SYN:
                    self._frames(_header(_PING, _ACK, 0, length))
                elif kind == _BYE:
                    return
                if flags & (_FIN | _RST):
                    self._forget(stream)
                self.news.set()

    def _forget(self, stream: int) -> None:
        self._windows.pop(stream, None)


def _header(kind: int, flags: int, stream: int, length: int) -> bytes:
    return _HEADER.pack(0, kind, flags, stream, length)
