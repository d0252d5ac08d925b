"""How peers reach each other: what everything above the network may count on.

A peer is named by its public key, which the transport has proved to be its own. A call is one
request and its response, opaque bytes both; it ends by its timeout, whatever happens, with the
whole response or an error of errors.py. Below that, a transport may be made of byte streams: those
are named here too.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from giaann_p2p.errors import PeerError
from giaann_p2p.net.frames import Buffer
from giaann_p2p.swarm.identity import Peer

Handler = Callable[[Peer, bytes], bytes | Awaitable[bytes]]
"""Answers a request: at once, or later. A GiaannError that it raises is told to the caller, in its
words; any other error only as a failure. What is to come later is cancelled when nobody waits for
it any more."""

Told = Callable[[bytes | PeerError], None]
"""Is told a peer's answer, or why there is none; raises nothing."""

Lost = Callable[[Peer, PeerError], None]
"""Is told that the connection to a peer was lost, not that a peer has left with a goodbye."""


Door = Callable[[Peer, bytes], str]
"""Tells, by what a peer has shown to begin with, why it is a stranger; nothing if it is none."""


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
        self, peer: Peer, payload: bytes, *, timeout: float, told: Told
    ) -> Callable[[], None] | None:
        """Call without a task, where there is a connection to a peer; `call` makes one.

        None if there is none; else what is to be called to wait no longer. `told` is called once,
        and not before this has returned; Unreachable tells it that nothing was sent. Refused if
        too much is under way already.
        """
        ...

    def serve(self, handler: Handler) -> None:
        """Answer the calls of other peers from now on."""
        ...

    def guard(self, door: Door) -> None:
        """Hold strangers to little from now on; to be called again when the door has changed."""
        ...

    def greeting_of(self, peer: Peer) -> bytes:
        """Return what a peer has shown; nothing if it has shown nothing, or is not connected."""
        ...

    def on_lost(self, lost: Lost) -> None:
        """Tell of peers that are lost from now on."""
        ...

    async def close(self) -> None:
        """Let what is under way end, for a while, then end all; nothing runs on afterwards."""
        ...


class ByteStream(Protocol):
    """Bytes both ways, in order; an OSError says that it broke."""

    async def read(self) -> bytes:
        """Return what has come, at least a byte; none at the end."""
        ...

    def deliver(self, to: Callable[[bytes], None]) -> None:
        """Hand over what comes from now on as soon as it comes; what has come is still to be read.

        So is the end. What it is handed to raises nothing.
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
        """Send at once what is not much; only where there is room, and while no write waits."""
        ...

    def close(self) -> None:
        """Let what was written arrive, then end; no more is read."""
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
        """Open a stream; OSError or Unreachable if there is none; if cancelled, none is left."""
        ...

    def listen(self, accept: Callable[[Peer, ByteStream], None]) -> None:
        """Hand over each stream that a peer opens."""
        ...

    def stop(self) -> None:
        """Take no stream any more."""
        ...
