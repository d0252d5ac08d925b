"""Limits of connections between peers: sizes, counts and timeouts."""

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.net.frames import CHUNK
from giaann_p2p.swarm.wire.messages import MOST_BYTES

FREE = 4 * CHUNK
"""The bytes of a long body that may be sent before the other side has given credit. Bodies up to
this size need no extra round trip, and a refused body wastes at most this much traffic."""


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(f"limits: {message}")


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of one connection; its two sides may have different ones."""

    calls: int = 1024
    """The most open requests in each direction. More: more small calls in flight; each open request
    takes about 1 KiB."""
    longest: int = MOST_BYTES
    """The most bytes of a request or response; longer ones are refused."""
    bytes_in: int = 1 << 27
    """The most bytes in memory of unanswered requests and of responses being received, counted as
    they arrive. Above this, requests are refused as busy. At least `longest`."""
    bytes_out: int = 1 << 27
    """The most bytes of requests and responses that wait to be sent. At least `longest`."""
    unsent_for: float = 0.5
    """The most seconds that a new request may wait to be sent, estimated from the requests before
    it. A request that would wait longer is refused on this side as busy, unless less than 1 MiB is
    queued. Less: a caller that asks for too much learns it sooner. More: this side accepts bursts
    that the peer, or the line, takes that long to absorb."""
    window: int = 1 << 22
    """The most bytes of one long body in flight, which limits a body's speed to window / round
    trip. A multiple of CHUNK, at least FREE."""
    ping_after: float = 5.0
    """The seconds after which a side that has sent nothing sends a ping, as a sign of life. Less:
    more small frames. More: a failure is noticed later. At most a third of `silent_after`, so that
    two pings may be late."""
    silent_after: float = 15.0
    """The seconds without a byte from the peer after which the peer counts as gone."""
    stalled_after: float = 60.0
    """The seconds without progress after which an incoming request, or a response that the peer
    does not read, is dropped."""
    slowest: int = 1 << 13
    """The bytes per second below which an incoming request, or a response to the peer, is dropped,
    once it has also taken `stalled_after` seconds. More: slow peers hold less memory. Less: lines
    can be thinner; the thinnest that a push reckons with carries twice as much."""
    greeting_within: float = 10.0
    """The seconds within which a peer must say hello; otherwise the connection ends."""
    stranger_calls: int = 4
    """The most open requests of a stranger: `calls` for a peer that is not admitted."""
    stranger_longest: int = 1 << 13
    """The most bytes of a stranger's request, or of a response to it. Enough for a swarm's
    manifest."""
    stranger_within: float = 10.0
    """The seconds after which a connection that a stranger opened ends."""

    def __post_init__(self) -> None:
        for name in (
            "calls",
            "longest",
            "unsent_for",
            "ping_after",
            "silent_after",
            "stalled_after",
            "slowest",
        ):
            _check(getattr(self, name) > 0, f"{name} must be more than 0")
        for name in ("greeting_within", "stranger_calls", "stranger_longest", "stranger_within"):
            _check(getattr(self, name) > 0, f"{name} must be more than 0")
        for name in ("bytes_in", "bytes_out"):
            _check(getattr(self, name) >= self.longest, f"{name} must be at least longest")
        _check(
            self.window >= FREE and self.window % CHUNK == 0,
            f"window must be a multiple of {CHUNK}, at least {FREE}; it is {self.window}",
        )
        _check(
            3 * self.ping_after <= self.silent_after,
            f"ping_after ({self.ping_after} s) must be at most a third of silent_after"
            f" ({self.silent_after} s)",
        )

    def for_strangers(self) -> "Limits":
        """Return the limits for the requests of a stranger: a peer that the door does not admit."""
        return msgspec.structs.replace(
            self,
            calls=min(self.calls, self.stranger_calls),
            longest=min(self.longest, self.stranger_longest),
        )


class TransportLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits of all connections of a peer together."""

    connection: Limits = Limits()
    """The limits of each single connection."""
    connections: int = 512
    """The most connections. When all are in use, a new one replaces a stranger's, or else the one
    that is idle for longest; if there is neither, the new one is refused as busy."""
    per_peer: int = 4
    """The most connections to one peer: one in use, and others that are closing."""
    bytes_in: int = 1 << 30
    """The sum of `Limits.bytes_in` over all connections. At least the limit of one connection."""
    bytes_out: int = 1 << 30
    """The sum of `Limits.bytes_out` over all connections. At least the limit of one connection."""
    dial_within: float = 5.0
    """The seconds that a dial may take; then the peer counts as unreachable."""
    settled_after: float = 2.0
    """The seconds within which two connections, one dialled by each side, count as simultaneous
    dials. A peer that dials later must have lost the older connection. Longer than a dial takes."""
    drain_within: float = 5.0
    """The seconds that `close` waits for open calls. 0: `close` ends them at once."""
    linger: float = 1.0
    """The seconds that a peer gets to read why its connection ends, before the stream is closed."""

    def __post_init__(self) -> None:
        for name in ("connections", "per_peer", "dial_within", "linger"):
            _check(getattr(self, name) > 0, f"{name} must be more than 0")
        for name in ("settled_after", "drain_within"):
            _check(getattr(self, name) >= 0, f"{name} must be at least 0")
        for name in ("bytes_in", "bytes_out"):
            least = getattr(self.connection, name)
            _check(
                getattr(self, name) >= least,
                f"{name} must be at least that of one connection, {least:,}",
            )
