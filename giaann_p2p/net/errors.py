"""How a call to another peer can fail, told apart by what may have happened there.

| error         | was it carried out? | what to do                                        |
|---------------|---------------------|---------------------------------------------------|
| `Unreachable` | no                  | ask another peer, or again later                  |
| `Refused`     | no, or it failed    | by its reason: wait, ask another, ask differently |
| `TimedOut`    | perhaps             | repeat only what may be done twice                |
| `Broken`      | perhaps             | repeat only what may be done twice                |
"""

from enum import IntEnum

from giaann_p2p.errors import MessageError, PeerError
from giaann_p2p.net.frames import LONGEST_ERROR, Buffer


class Reason(IntEnum):
    """Why a peer will not answer."""

    BUSY = 1
    """It has as much to do as it takes on; later it may have room."""
    LEAVING = 2
    """It is about to leave the swarm."""
    TOO_LONG = 3
    """The request, or what it asks for, is longer than a message may be."""
    STALLED = 4
    """Part of the request, or credit for the response, did not come for too long."""
    FAILED = 5
    """It tried, and could not; the words say why."""
    STRANGER = 6
    """It does not serve this one, or not with this; the words say what would help."""


class Unreachable(PeerError):  # noqa: N818  (what it is, not what went wrong)
    """No request has gone to the peer."""


class TimedOut(PeerError):  # noqa: N818
    """The peer has not answered in time."""


class Broken(PeerError):  # noqa: N818
    """The connection ended, or the peer broke its rules, before the answer was complete."""


class Refused(PeerError):  # noqa: N818
    """The peer, or this one on its behalf, said no."""

    def __init__(self, reason: Reason, words: str) -> None:
        super().__init__(words)
        self.reason = reason

    def to_bytes(self) -> bytes:
        """Return what an error frame carries."""
        words = str(self).encode()[: LONGEST_ERROR - 1].decode(errors="ignore")
        return bytes([self.reason]) + words.encode()

    @classmethod
    def from_bytes(cls, data: Buffer) -> "Refused":
        """Read what `to_bytes` wrote; the words are fit for a terminal, whoever wrote them."""
        code, *_ = data
        if code not in _REASONS:
            raise MessageError(f"the reason of an error is {code}, which is none")
        words = bytes(data[1:]).decode(errors="replace")
        return cls(Reason(code), "".join(c if c.isprintable() else "?" for c in words))


_REASONS = frozenset(Reason)
