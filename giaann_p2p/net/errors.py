"""Errors of a call to another peer, classified by whether the peer carried out the request.

| error         | was it carried out? | what to do                                               |
|---------------|---------------------|----------------------------------------------------------|
| `Unreachable` | no                  | ask another peer, or retry later                         |
| `Refused`     | no, or it failed    | by reason: wait, ask another peer, or change the request |
| `TimedOut`    | perhaps             | retry only what is idempotent                            |
| `Broken`      | perhaps             | retry only what is idempotent                            |
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
    """The request, or the response to it, is longer than a message may be."""
    STALLED = 4
    """The request or the response made no progress for too long: the rest of the request, or credit
    for the response, did not arrive."""
    FAILED = 5
    """The peer tried to answer and failed; the message says why."""
    STRANGER = 6
    """The refusing peer treats the caller as a stranger, for example because the caller's token is
    missing or has expired; the message says what would help."""


class Unreachable(PeerError):  # noqa: N818  (what it is, not what went wrong)
    """Nothing of the request was sent to the peer, so the peer has not carried it out."""


class NoConnection(Unreachable):
    """No connection to the peer opened in time: the peer may be down, or packets were lost."""


class DialPaused(NoConnection):
    """A dial to the peer has just failed, and the network does not dial it again yet."""


class NobodyYet(Unreachable):
    """No other peer is known: this one is the first of its swarm, and others will dial it."""


class TimedOut(PeerError):  # noqa: N818
    """The peer did not answer before the deadline; it may have carried out the request."""


class Broken(PeerError):  # noqa: N818
    """The connection ended, or the peer violated the protocol, before the answer was complete."""


class Refused(PeerError):  # noqa: N818
    """The peer refused the request, or this peer refused to send it, with a reason code."""

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
            raise MessageError(f"an error frame has the unknown reason code {code}")
        words = bytes(data[1:]).decode(errors="replace")
        return cls(Reason(code), "".join(c if c.isprintable() else "?" for c in words))


_REASONS = frozenset(Reason)
