"""The `Refused` errors for messages that exceed a limit, sent to the peer or raised locally."""

from giaann_p2p.net.errors import Reason, Refused


def too_long(what: str, size: int, longest: int) -> Refused:
    """Return the refusal of a message that is longer than the limit; sizes in bytes."""
    words = f"{what} of {size:,} bytes exceeds the limit of {longest:,}; ask for less at a time"
    return Refused(Reason.TOO_LONG, words)


def too_slow(most: float) -> Refused:
    """Return the refusal of a request that would wait for more than `most` seconds to be sent."""
    words = f"requests to the peer wait for more than {most:g} s to be sent; try again later"
    return Refused(Reason.BUSY, words)


def no_room(what: str, size: int, where: str = "now") -> Refused:
    """Return the refusal of a message for which no memory budget is left at the moment."""
    return Refused(Reason.BUSY, f"no room for {what} of {size:,} bytes {where}; try again later")
