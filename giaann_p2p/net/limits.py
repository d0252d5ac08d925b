"""Limits of connections: sizes, counts and timeouts."""

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.net.frames import CHUNK
from giaann_p2p.swarm.wire.messages import MOST_BYTES

FREE = 4 * CHUNK
"""The number of bytes of a long body that may be sent before the other side has given credit:
bodies up to this size cost no extra round trip, and a body that is refused wastes no more than this
on the way."""


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(f"limits: {message}")


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of each connection; the two sides may differ."""

    calls: int = 1024
    """The most open requests each way. More: more small calls in flight; each costs about 1 KiB."""
    longest: int = MOST_BYTES
    """The most bytes of a request or response; longer ones are refused."""
    bytes_in: int = 1 << 27
    """The most bytes of unanswered requests and of responses being received, counted as they
    arrive. Above this, requests are refused as busy. At least `longest`."""
    bytes_out: int = 1 << 27
    """The most bytes of requests and responses still to be sent. At least `longest`."""
    unsent_for: float = 0.5
    """The seconds that a request may wait before it is sent, estimated from the requests before it;
    the first MiB is exempt. Above this, this side refuses the request as busy. Less: a caller that
    asks too much learns it sooner. More: bursts pass that take the peer, or the line, that long to
    absorb."""
    window: int = 1 << 22
    """The most bytes of one long body in flight: a body moves at most window / round trip a second.
    A multiple of CHUNK, at least FREE."""
    ping_after: float = 5.0
    """The seconds without sending anything after which a ping is sent as a sign of life. Less: more
    small frames. More: a failure is noticed later. At most a third of `silent_after`, so that two
    pings may be late."""
    silent_after: float = 15.0
    """The seconds without a byte from the peer after which it counts as gone."""
    stalled_after: float = 60.0
    """The seconds without progress after which an incoming request, or a response that the peer
    does not read, is dropped."""
    greeting_within: float = 10.0
    """The seconds within which a peer has to say hello."""
    stranger_calls: int = 4
    """The same as `calls`, for a stranger."""
    stranger_longest: int = 1 << 13
    """The same as `longest`, for requests of a stranger and responses to it: more than a manifest
    takes."""
    stranger_within: float = 10.0
    """The seconds after which a stranger's connection ends."""

    def __post_init__(self) -> None:
        for name in (
            "calls",
            "longest",
            "unsent_for",
            "ping_after",
            "silent_after",
            "stalled_after",
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
        """Return the limits for a stranger."""
        return msgspec.structs.replace(
            self,
            calls=min(self.calls, self.stranger_calls),
            longest=min(self.longest, self.stranger_longest),
        )


class TransportLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of all connections of a peer together."""

    connection: Limits = Limits()
    """Limits of each connection."""
    connections: int = 512
    """The most connections. A further one replaces a stranger's, or else the one that is idle for
    longest; if there is neither, it is refused as busy."""
    per_peer: int = 4
    """The most connections of one peer: one in use, and others that are closing."""
    bytes_in: int = 1 << 30
    """The same as `Limits.bytes_in`, for all connections together. At least that value."""
    bytes_out: int = 1 << 30
    """The same as `Limits.bytes_out`, for all connections together. At least that value."""
    dial_within: float = 5.0
    """The seconds for opening a stream, after which the peer counts as unreachable."""
    settled_after: float = 2.0
    """The seconds after which a new connection is no longer taken for a simultaneous dial: a peer
    that dials again has lost the old one. More than a dial takes."""
    drain_within: float = 5.0
    """The seconds that `close` waits for open calls. 0: they end at once."""
    linger: float = 1.0
    """The seconds for telling a peer why a connection ends."""

    def __post_init__(self) -> None:
        for name in ("connections", "per_peer", "dial_within", "linger"):
            _check(getattr(self, name) > 0, f"{name} must be more than 0")
        for name in ("settled_after", "drain_within"):
            _check(getattr(self, name) >= 0, f"{name} must be at least 0")
        for name in ("bytes_in", "bytes_out"):
            least = getattr(self.connection, name)
            _check(getattr(self, name) >= least, f"{name} must be at least that of a connection")
