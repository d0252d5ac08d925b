"""The interface by which peers call each other; everything above the network layer uses it.

A peer is named by its public key, which the transport has verified. A call is one request and its
response, both opaque bytes. It ends by its timeout at the latest, either with the whole response or
with an error of errors.py. `Streams` and `ByteStream` are the interface of the byte streams that a
transport may be built on.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from giaann_p2p.errors import PeerError
from giaann_p2p.net.frames import Buffer
from giaann_p2p.swarm.wire.identity import Peer

Handler = Callable[[Peer, bytes], bytes | Awaitable[bytes]]
"""A function that answers a peer's request with bytes, or with an awaitable of bytes. If it raises
a GiaannError, the caller gets that error's text; for any other error, the caller only learns that
this peer failed. A pending awaitable is cancelled when the caller stops waiting."""

OnAnswer = Callable[[bytes | PeerError], None]
"""A callback for a peer's answer, or for the error if there is no answer; it must not raise."""

OnLost = Callable[[Peer, PeerError], None]
"""A callback for a lost connection: it gets the peer and the error. It is not called for a peer
that left with a goodbye."""


Door = Callable[[Peer, bytes], str]
"""A function that judges a peer by its greeting: it returns why the peer is a stranger, or an empty
string if the peer may be served."""


class Transport(Protocol):
    """The interface of a transport, which makes calls to other peers and answers theirs."""

    @property
    def me(self) -> Peer:
        """The public key of this peer."""
        ...

    async def call(self, peer: Peer, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        """Return a peer's answer; raise Unreachable, Refused, TimedOut or Broken on failure."""
        ...

    def ask(
        self, peer: Peer, payload: bytes, *, timeout: float, told: OnAnswer
    ) -> Callable[[], None] | None:
        """Call over an existing connection, without a task; return None if there is no connection.

        Unlike `call`, this never opens a connection. The result is a function that stops the wait.
        `told` is called once, after this function has returned, unless the wait was stopped;
        Unreachable means that nothing was sent. Raises Refused if too much is in flight already.
        """
        ...

    def serve(self, handler: Handler) -> None:
        """Answer the calls of other peers with a handler from now on."""
        ...

    def guard(self, door: Door) -> None:
        """Restrict strangers from now on: peers whose greeting the door does not admit.

        Call this again whenever the door would judge greetings differently than before.
        """
        ...

    def greeting_of(self, peer: Peer) -> bytes:
        """Return the greeting that a peer sent; empty if it sent none or is not connected."""
        ...

    def on_lost(self, lost: OnLost) -> None:
        """Register a callback for lost connections to peers."""
        ...

    async def close(self) -> None:
        """Let open calls finish within a grace period, then end the rest; leave no task running."""
        ...


class ByteStream(Protocol):
    """A two-way, ordered byte stream; its methods raise OSError once it is broken."""

    async def read(self) -> bytes:
        """Return the bytes that have arrived, at least one; return b"" at the end of the stream."""
        ...

    def deliver(self, to: Callable[[bytes], None]) -> None:
        """Pass incoming bytes to a callback as soon as they arrive; the callback must not raise.

        Bytes that arrived before this call, and the end of the stream, must still be fetched with
        `read`.
        """
        ...

    async def write(self, pieces: Sequence[Buffer]) -> None:
        """Send some pieces in order; return when there is room for more."""
        ...

    @property
    def room(self) -> bool:
        """Whether `write` would return without waiting."""
        ...

    def put(self, pieces: Sequence[Buffer]) -> None:
        """Send a few bytes without waiting; only while there is room and no `write` waits."""
        ...

    def close(self) -> None:
        """Close the stream once the written bytes have arrived; nothing more is read."""
        ...

    def abort(self) -> None:
        """End the stream at once in both directions; what is still in transit may be lost."""
        ...


class Streams(Protocol):
    """The interface by which a transport opens byte streams to other peers, and accepts theirs."""

    @property
    def me(self) -> Peer:
        """The public key of this peer."""
        ...

    async def dial(self, peer: Peer) -> ByteStream:
        """Open a stream to a peer; raise OSError or Unreachable if that fails.

        If the caller is cancelled, no stream is left open.
        """
        ...

    def listen(self, accept: Callable[[Peer, ByteStream], None]) -> None:
        """Pass each stream that another peer opens to a callback."""
        ...

    def stop(self) -> None:
        """Accept no more streams from other peers."""
        ...
