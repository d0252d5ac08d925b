"""A connection of a client: uvicorn's, with bounds on clients that are slow or too many.

uvicorn waits for ever for the rest of a request's head, and for a client that reads nothing. Here a
timer ends both: the first closes a "slowloris", the second frees the buffer of a slow reader.
Bodies are bounded by the guard, which sees them as they come.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import h11
import msgspec
from uvicorn.protocols.http.h11_impl import H11Protocol

from giaann_p2p.gateway.limits import Limits

_BUFFER = 1 << 16
"""Bytes written but not sent, beyond which the application waits for the client."""


class Connection(H11Protocol):
    """A connection with the default limits; `connection_with` makes a class with others."""

    limits = Limits()

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401  (uvicorn's own)
        super().__init__(*given, **named)
        self._head: asyncio.TimerHandle | None = None
        self._reader: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; close the connection if there are too many."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=_BUFFER)
        if len(self.connections) > self.limits.connections:
            transport.abort()
            return
        self._head = self._after(self.limits.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the timers."""
        _cancel(self._head)
        self._head = None
        _cancel(self._reader)
        self._reader = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive data; once a request has begun, its head must be complete in time."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            _cancel(self._head)
            self._head = None
        elif self._head is None:
            self._head = self._after(self.limits.head_seconds)

    def pause_writing(self) -> None:
        """Stop writing to a client that does not read, and drop it if that lasts too long."""
        super().pause_writing()
        self._reader = self._reader or self._after(self.limits.write_seconds)

    def resume_writing(self) -> None:
        """Resume writing."""
        _cancel(self._reader)
        self._reader = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, even if the client never reads what was written last."""
        super().timeout_keep_alive_handler()
        self._reader = self._reader or self._after(self.limits.write_seconds)

    def _after(self, seconds: float) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, self.transport.abort)


def connection_with(limits: Limits, connections: int) -> Callable[..., asyncio.Protocol]:
    """Return a class of connections with these limits, but at most `connections` of them."""
    limits = msgspec.structs.replace(limits, connections=connections)
    return type("Connection", (Connection,), {"limits": limits})


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
