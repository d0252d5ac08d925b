"""A relay of TCP connections that keeps all bytes for a while, both ways: a long way on a machine.

It delays whatever is sent over it, handshakes and the directory too, and holds no rate down.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn, cast

import uvloop

from giaann_p2p.local import linux
from tests.benchmarks.swarm.line import END, LOST, Line

NAME = "relay"
_MOST = 1 << 24
"""Bytes on one way above which the sender has to wait; far more than fill any delay here."""
_LOOPBACK = "127.0.0.1"


class Side(asyncio.Protocol):
    """One of a connection's two sides: what comes from it goes to the other one."""

    def __init__(self, delay: float, among: "set[Side]", port: int | None = None) -> None:
        """Take the port to which the other side is to be opened, if it is not there already.

        `among`: all that are open; each puts itself in, and takes itself out.
        """
        self.other: Side
        self._delay, self._among, self._port = delay, among, port
        self._loop = asyncio.get_running_loop()
        self._line = Line(delay)
        self._transport: asyncio.Transport | None = None
        self._early: list[bytes | None] = []  # arrived here before there was a connection
        self._timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[None] | None = None
        self._paused = self._over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._among.add(self)
        for piece in self._early:
            self.deliver(piece)
        if self._port is not None:
            self.other = Side(self._delay, self._among)
            self.other.other = self
            self._opening = self._loop.create_task(self._open(self._port))

    def data_received(self, data: bytes) -> None:
        """Send what came on its way."""
        self._send(data)
        if self._line.size > _MOST and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Let the end follow, and stay open the other way."""
        self._send(END)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the other side close when all has arrived there."""
        self._among.discard(self)
        self._transport, self._over = None, True
        self._send(LOST)

    def deliver(self, piece: bytes | None) -> None:
        """Hand over what has arrived here."""
        transport = self._transport
        if transport is None:
            if not self._over:
                self._early.append(piece)
        elif piece is LOST:
            transport.close()
        elif transport.is_closing():
            return
        elif piece == END:
            transport.write_eof()
        else:
            transport.write(piece)

    def abort(self) -> None:
        """End at once."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def _open(self, port: int) -> None:
        try:
            await self._loop.create_connection(lambda: self.other, _LOOPBACK, port)
        except OSError:
            self.deliver(LOST)

    def _send(self, piece: bytes | None) -> None:
        self._line.send(piece, self._loop.time())
        self._arm()

    def _arm(self) -> None:
        due = self._line.next
        if self._timer is None and due is not None:
            self._timer = self._loop.call_at(due, self._arrive, due)

    def _arrive(self, due: float) -> None:
        self._timer = None
        for piece in self._line.arrived(max(due, self._loop.time())):
            self.other.deliver(piece)
        if self._paused and self._line.size <= _MOST // 2 and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        self._arm()


@asynccontextmanager
async def relayed(
    listening: socket.socket, port: int, delay: float
) -> AsyncIterator[asyncio.Server]:
    """Bring connections to a port of this machine; in the end break those that are left."""
    loop, sides = asyncio.get_running_loop(), set[Side]()
    try:
        async with await loop.create_server(
            lambda: Side(delay, sides, port), sock=listening
        ) as server:
            yield server
    finally:
        for side in list(sides):
            side.abort()
        await asyncio.sleep(0)  # they hear of it in the loop's next turn


def be_relay(listening: socket.socket, port: int, delay: float, parent: int) -> NoReturn:
    """Relay until the parent ends; for a process that was just forked."""
    code = 1
    try:
        linux.die_with_parent()
        if os.getppid() == parent:
            linux.call_it(NAME)
            uvloop.run(_for_ever(listening, port, delay))
    finally:
        os._exit(code)


async def _for_ever(listening: socket.socket, port: int, delay: float) -> None:
    async with relayed(listening, port, delay) as server:
        await server.serve_forever()
