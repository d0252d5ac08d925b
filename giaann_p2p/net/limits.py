"""What connections may cost, and how long what may take."""

import msgspec

from giaann_p2p.errors import UsageError
from giaann_p2p.net.frames import CHUNK
from giaann_p2p.swarm.messages import MOST_BYTES

FREE = 4 * CHUNK
"""Bytes of a long body that may be sent before the other side has given credit: no round trip is
lost on bodies up to here, and a body that is refused costs no more than this on the way."""


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise UsageError(f"limits: {message}")


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of each connection; both sides may have their own."""

    calls: int = 1024
    """Most open requests each way. More: more small calls under way; each costs about 1 KiB."""
    longest: int = MOST_BYTES
    """Most bytes of a request or response; what is longer is refused."""
    bytes_in: int = 1 << 27
    """Most bytes of requests not answered yet and of responses being taken in, as far as they have
    come. From here on requests are refused as busy. At least `longest`."""
    bytes_out: int = 1 << 27
    """Most bytes of requests and responses still to be sent. At least `longest`."""
    unsent_for: float = 0.5
    """Seconds that a request may wait before it is sent, as those before it did, but for the first
    MiB; beyond that it is refused as busy on this side. Less: who asks too much knows it sooner;
    more: bursts pass that the peer, or the line, takes that long to take."""
    window: int = 1 << 22
    """Bytes of one long body on their way: a body moves at most window / round trip a second. A
    multiple of CHUNK, at least FREE."""
    ping_after: float = 5.0
    """Seconds without sending anything after which a ping goes out, so that the peer hears of us.
    Less: more small frames; more: later notice. At most a third of `silent_after`, so that two
    pings may be late."""
    silent_after: float = 15.0
    """Seconds without a byte from the peer after which it counts as gone."""
    stalled_after: float = 60.0
    """Seconds after which a request that stopped coming, or a response that is not taken, is
    dropped."""
    greeting_within: float = 10.0
    """Seconds within which a peer has to say hello."""
    stranger_calls: int = 4
    """As `calls`, of a peer that is a stranger."""
    stranger_longest: int = 1 << 13
    """As `longest`, of what a stranger asks and is told: more than a manifest."""
    stranger_within: float = 10.0
    """Seconds after which a stranger's connection ends."""

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
        """Return what a stranger is held to."""
        return msgspec.structs.replace(
            self,
            calls=min(self.calls, self.stranger_calls),
            longest=min(self.longest, self.stranger_longest),
        )


class TransportLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of all connections of a peer together."""

    connection: Limits = Limits()
    """Of each."""
    connections: int = 512
    """Most connections. A further one takes the place of the one that is idle for longest, those of
    strangers first; if none is, it is refused as busy."""
    per_peer: int = 4
    """Most connections of one peer: one in use, and others that end."""
    bytes_in: int = 1 << 30
    """As `Limits.bytes_in`, of all. At least that."""
    bytes_out: int = 1 << 30
    """As `Limits.bytes_out`, of all. At least that."""
    dial_within: float = 5.0
    """Seconds for opening a stream, after which the peer counts as unreachable."""
    settled_after: float = 2.0
    """Seconds after which a connection is no longer one of two that both sides dialled at once: a
    peer that dials again has lost it. More than a dial takes."""
    drain_within: float = 5.0
    """Seconds that `close` lets calls go on. 0: it ends them at once."""
    linger: float = 1.0
    """Seconds for telling a peer why a connection ends."""

    def __post_init__(self) -> None:
        for name in ("connections", "per_peer", "dial_within", "linger"):
            _check(getattr(self, name) > 0, f"{name} must be more than 0")
        for name in ("settled_after", "drain_within"):
            _check(getattr(self, name) >= 0, f"{name} must be at least 0")
        for name in ("bytes_in", "bytes_out"):
            least = getattr(self.connection, name)
            _check(getattr(self, name) >= least, f"{name} must be at least that of a connection")
