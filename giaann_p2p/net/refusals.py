"""Refusals of requests that ask for too much, sent to the peer or raised to local callers."""

from giaann_p2p.net.errors import Reason, Refused


def too_long(what: str, size: int, longest: int) -> Refused:
    """Return the refusal of a message that is longer than the limit."""
    words = f"{what} of {size:,} bytes; {longest:,} is the most. Ask for less at a time"
    return Refused(Reason.TOO_LONG, words)


def too_slow(most: float) -> Refused:
    """Return the refusal of a request that would wait for too long to be sent."""
    words = f"requests to the peer wait for more than {most:g} s to be sent; ask again later"
    return Refused(Reason.BUSY, words)


def no_room(what: str, size: int, where: str = "beside others") -> Refused:
    """Return the refusal of a message for which there is no room now."""
    return Refused(Reason.BUSY, f"no room for {what} of {size:,} bytes {where}")
