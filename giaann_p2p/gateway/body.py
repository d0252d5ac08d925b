"""Reads the body of a request, within bounds on its size and on the time that it may take."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import Receive, Scope

_RATE = 1 << 16
"""Minimum rate at which a long body must come, in bytes per second."""


class TooLong(Exception):  # noqa: N818  (what it is, not what went wrong)
    """The body exceeds the maximum size."""


class TooSlow(Exception):  # noqa: N818
    """The body did not come in time."""


class Gone(Exception):  # noqa: N818
    """The client disconnected before it had sent its whole body."""


def is_short(scope: Scope, most: int) -> bool:
    """Return whether a request's Content-Length promises at most so many bytes."""
    told = _length(scope)
    return bool(told) and len(told) <= len(str(most)) and int(told) <= most


async def read(scope: Scope, receive: Receive, most: int, seconds: float) -> bytes:
    """Return the body of a request.

    Raises TooLong if it exceeds `most` bytes: before reading, if Content-Length says so. Raises
    TooSlow after `seconds`, plus one for each 64 KiB received, and Gone if the client leaves.
    """
    if _length(scope) and not is_short(scope, most):
        raise TooLong
    body, clock = bytearray(), asyncio.get_running_loop().time
    until = clock() + seconds
    while True:
        try:
            async with asyncio.timeout_at(until + len(body) / _RATE):
                message = await receive()
        except TimeoutError:
            raise TooSlow from None
        if message["type"] == "http.disconnect":
            raise Gone
        body += message.get("body", b"")
        if len(body) > most:
            raise TooLong
        if not message.get("more_body", False):
            return bytes(body)


def _length(scope: Scope) -> str:
    """Return the number in a request's Content-Length; empty if there is none."""
    told = Headers(scope=scope).get("content-length", "")
    return told if told.isdecimal() else ""
