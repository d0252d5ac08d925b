"""The ways in which a call to another peer can fail, by whether the request was carried out.

| error         | was it carried out? | what to do                                        |
|---------------|---------------------|---------------------------------------------------|
| `Unreachable` | no                  | ask another peer, or retry later                  |
| `Refused`     | no, or it failed    | by its reason: wait, ask another, ask differently |
| `TimedOut`    | perhaps             | retry only what is idempotent                     |
| `Broken`      | perhaps             | retry only what is idempotent                     |
"""

from enum import IntEnum

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.frames import LONGEST_ERROR, Buffer


class Reason(IntEnum):
    """The reason why a peer refuses to answer."""

    BUSY = 1
    """The peer is at capacity; a later retry may succeed."""
    LEAVING = 2
    """The peer is about to leave the swarm."""
    TOO_LONG = 3
    """The request, or the response that it asks for, is longer than a message may be."""
    STALLED = 4
    """The rest of the request, or credit for the response, did not arrive for too long."""
    FAILED = 5
    """The peer tried and failed; the message says why."""
    STRANGER = 6
    """The peer does not serve this peer, or not with this greeting; the message says what would
    help."""


class Unreachable(PeerError):  # noqa: N818  (what it is, not what went wrong)
    """Nothing of the request was sent to the peer."""


class NoConnection(Unreachable):
    """No connection came about in time: the peer may be down, or packets were lost."""


class NobodyYet(Unreachable):
    """No other peer is known: this peer is the first of its swarm, and others will dial it."""


class TimedOut(PeerError):  # noqa: N818
    """The peer has not answered before the deadline."""


class Broken(PeerError):  # noqa: N818
    """The connection ended, or the peer violated the protocol, before the answer was complete."""


class Refused(PeerError):  # noqa: N818
    """The peer, or this peer on its behalf, refused the request."""

    def __init__(self, reason: Reason, words: str) -> None:
        super().__init__(words)
        self.reason = reason

    def to_bytes(self) -> bytes:
        """Return the payload of an error frame: the reason's code and the message."""
        words = str(self).encode()[: LONGEST_ERROR - 1].decode(errors="ignore")
        return bytes([self.reason]) + words.encode()

    @classmethod
    def from_bytes(cls, data: Buffer) -> "Refused":
        """Parse the payload of an error frame.

        Unprintable characters of the message are replaced, because a stranger may have written it
        and it may be shown on a terminal.
        """
        code, *_ = data
        if code not in _REASONS:
            raise MessageError(f"the reason of an error is {code}, which is none")
        words = bytes(data[1:]).decode(errors="replace")
        return cls(Reason(code), "".join(c if c.isprintable() else "?" for c in words))


_REASONS = frozenset(Reason)
