"""Streams to peers for any number of keys in one process: a p2pd for each key would be too much."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from giaann_p2p.net.frames import Buffer
from giaann_p2p.net.transport import ByteStream
from giaann_p2p.swarm.wire.identity import Peer
from tests.benchmarks.p2pd_flood.connection import Connection, line
from tests.benchmarks.p2pd_flood.floods import FRAMES
from tests.benchmarks.p2pd_flood.noise import raw_public

_ANSWER = len(line("/multistream/1.0.0") + line(FRAMES))
"""Bytes that come before those of the protocol."""


class RawStream:
    """One stream of a connection, as `net.transport.ByteStream` wants it."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection, self._number = connection, number
        self._skip = _ANSWER
        self._pumping: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    async def read(self) -> bytes:
        """Return what has come, at least a byte; none at the end."""
        heard = self._connection.heard[self._number]
        while True:
            if self._skip and len(heard) >= self._skip:
                del heard[: self._skip]
                self._skip = 0
            if heard and not self._skip:
                found = bytes(heard)
                heard.clear()
                return found
            if not self._connection.is_open:
                return b""
            self._connection.news.clear()
            await self._connection.news.wait()

    def deliver(self, to: Callable[[bytes], None]) -> None:
        """Hand over what comes from now on."""
        self._pumping = asyncio.create_task(self._pump(to))

    async def write(self, pieces: Sequence[Buffer]) -> None:
        """Send; return when there is room for more."""
        data = b"".join(pieces)
        while data and self._connection.is_open:
            fits = self._connection.window(self._number)
            if not fits:
                self._connection.news.clear()
                await self._connection.news.wait()
            await self._connection.write(self._number, data[:fits])
            data = data[fits:]

    @property
    def room(self) -> bool:
        """Never: everything is written by `write`."""
        return False

    def put(self, pieces: Sequence[Buffer]) -> None:
        """Not called where there is never room."""
        raise NotImplementedError

    def close(self) -> None:
        """End the connection, which has no other stream."""
        self._closing = asyncio.create_task(self._connection.close())

    abort = close

    async def _pump(self, to: Callable[[bytes], None]) -> None:
        while data := await self.read():
            to(data)
        to(b"")


class RawStreams:
    """Streams of one key, a connection for each."""

    def __init__(self, key: Ed25519PrivateKey, ports: Mapping[Peer, int]) -> None:
        """Take where each peer listens on loopback."""
        self.me = Peer(raw_public(key))
        self._key, self._ports = key, ports

    async def dial(self, peer: Peer) -> ByteStream:
        """Open a stream."""
        connection = await Connection.dialled("127.0.0.1", self._ports[peer], self._key)
        return RawStream(connection, await connection.open(FRAMES, read=True))

    def listen(self, accept: Callable[[Peer, ByteStream], None]) -> None:
        """Take none: nobody dials a stranger that does not listen."""

    def stop(self) -> None:
        """Nothing was taken."""
