"""What is said to whom asks for too much: to the peer, or to this side's own callers."""

from giaann_p2p.net.errors import Reason, Refused


def too_long(what: str, size: int, longest: int) -> Refused:
    """Say that a message is longer than one may be."""
    words = f"{what} of {size:,} bytes; {longest:,} is the most. Ask for less at a time"
    return Refused(Reason.TOO_LONG, words)


def too_slow(most: float) -> Refused:
    """Say that a request would wait for too long to be sent."""
    words = f"requests to the peer wait for more than {most:g} s to be sent; ask again later"
    return Refused(Reason.BUSY, words)


def no_room(what: str, size: int, where: str = "beside others") -> Refused:
    """Say that there is no room for a message now."""
    return Refused(Reason.BUSY, f"no room for {what} of {size:,} bytes {where}")
