"""The events that a connection reports to its driver."""

import msgspec

from giaann_p2p.errors import PeerError


class Requested(msgspec.Struct, frozen=True, gc=False):
    """The peer has sent a request; answer or refuse it by its number, `request`."""

    request: int
    body: bytes


class Responded(msgspec.Struct, frozen=True, gc=False):
    """The peer has answered a request of this side."""

    request: int
    body: bytes


class Failed(msgspec.Struct, frozen=True):
    """A request of this side has failed, and will get no answer."""

    request: int
    error: PeerError


class Cancelled(msgspec.Struct, frozen=True, gc=False):
    """A request of the peer has ended early: it was cancelled, or its answer cannot be sent."""

    request: int


Event = Requested | Responded | Failed | Cancelled
