"""How peers call each other: the interface that everything above the network builds on.

A peer is named by its public key, which the transport has proved. A call is one request and its
response, both opaque bytes; it ends by its timeout at the latest, with the whole response or an
error of errors.py. A transport may be built on byte streams, whose interface is here, too.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from giaann_p2p.errors import PeerError
from giaann_p2p.net.frames import Buffer
from giaann_p2p.swarm.wire.identity import Peer

Handler = Callable[[Peer, bytes], bytes | Awaitable[bytes]]
"""A function that answers a request, at once or by an awaitable. The caller gets the text of a
GiaannError that it raises; any other error is reported only as a failure. A pending awaitable is
cancelled when the caller no longer waits for it."""

OnAnswer = Callable[[bytes | PeerError], None]
"""A function that takes a peer's answer, or the reason why there is none; it must not raise."""

OnLost = Callable[[Peer, PeerError], None]
"""A function that takes the peer whose connection was lost; not called for a peer that left with a
goodbye."""


Door = Callable[[Peer, bytes], str]
"""A function that returns, by a peer's greeting, why the peer is a stranger; an empty string if it
is none."""


class Transport(Protocol):
    """Calls to peers, and from them."""

    @property
    def me(self) -> Peer:
        """This peer."""
        ...

    async def call(self, peer: Peer, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        """Return a peer's answer; Unreachable, Refused, TimedOut or Broken if there is none."""
        ...

    def ask(
        self, peer: Peer, payload: bytes, *, timeout: float, told: OnAnswer
    ) -> Callable[[], None] | None:
        """Call over an existing connection, without a task; return None if there is no connection.

        `call` makes a connection, `ask` does not. The result is a function that stops the wait.
        `told` is called once, and not before this function has returned; Unreachable means that
        nothing was sent. Raises Refused if too much is in flight already.
        """
        ...

    def serve(self, handler: Handler) -> None:
        """Answer the calls of other peers from now on."""
        ...

    def guard(self, door: Door) -> None:
        """Apply the limits for strangers from now on; call it again when the door has changed."""
        ...

    def greeting_of(self, peer: Peer) -> bytes:
        """Return a peer's greeting; empty if it has sent none, or is not connected."""
        ...

    def on_lost(self, lost: OnLost) -> None:
        """Register a callback for lost peers."""
        ...

    async def close(self) -> None:
        """Let open calls end within a grace period, then end the rest; no task is left."""
        ...


class ByteStream(Protocol):
    """Bytes both ways, in order; raises OSError when it is broken."""

    async def read(self) -> bytes:
        """Return the bytes that have arrived, at least one; none at the end."""
        ...

    def deliver(self, to: Callable[[bytes], None]) -> None:
        """Deliver incoming bytes to a callback as soon as they arrive; it must not raise.

        Bytes that arrived before, and the end of the stream, are still to be read.
        """
        ...

    async def write(self, pieces: Sequence[Buffer]) -> None:
        """Send; return when there is room for more."""
        ...

    @property
    def room(self) -> bool:
        """Whether a write would not wait."""
        ...

    def put(self, pieces: Sequence[Buffer]) -> None:
        """Send a little at once; only where there is room, and while no write waits."""
        ...

    def close(self) -> None:
        """Close once the written bytes have arrived; no more is read."""
        ...

    def abort(self) -> None:
        """End at once, both ways."""
        ...


class Streams(Protocol):
    """Byte streams to peers, and from them."""

    @property
    def me(self) -> Peer:
        """This peer."""
        ...

    async def dial(self, peer: Peer) -> ByteStream:
        """Open a stream; OSError or Unreachable if that fails; if cancelled, none is left open."""
        ...

    def listen(self, accept: Callable[[Peer, ByteStream], None]) -> None:
        """Deliver each stream that a peer opens to a callback."""
        ...

    def stop(self) -> None:
        """Take no more streams."""
        ...
