"""The events that a connection reports to its driver."""

import msgspec

from giaann_p2p.errors import PeerError


class Requested(msgspec.Struct, frozen=True, gc=False):
    """The peer has sent a request, to be answered or refused under this number."""

    request: int
    body: bytes


class Responded(msgspec.Struct, frozen=True, gc=False):
    """The peer has answered."""

    request: int
    body: bytes


class Failed(msgspec.Struct, frozen=True):
    """A request of this side will get no answer."""

    request: int
    error: PeerError


class Cancelled(msgspec.Struct, frozen=True, gc=False):
    """The peer no longer waits for this answer, or it could not be delivered."""

    request: int


Event = Requested | Responded | Failed | Cancelled
