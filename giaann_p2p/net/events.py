"""What a connection tells whoever drives it."""

import msgspec

from giaann_p2p.errors import PeerError


class Requested(msgspec.Struct, frozen=True, gc=False):
    """The peer asks: to be answered, or refused, under this number."""

    request: int
    body: bytes


class Responded(msgspec.Struct, frozen=True, gc=False):
    """The peer has answered."""

    request: int
    body: bytes


class Failed(msgspec.Struct, frozen=True):
    """There will be no answer."""

    request: int
    error: PeerError


class Cancelled(msgspec.Struct, frozen=True, gc=False):
    """The peer no longer waits for this answer, or could not be told it."""

    request: int


Event = Requested | Responded | Failed | Cancelled
