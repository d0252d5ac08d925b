"""Server-sent events: how they are written, and the response that streams them."""

from collections.abc import AsyncGenerator

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

COMMENT = b":\n\n"
"""Sent now and then on a quiet stream, so that both sides notice a broken connection."""
_json = msgspec.json.Encoder().encode
Events = AsyncGenerator[bytes, None]


def event(name: str, data: object) -> bytes:
    """Return a named event, with its data as JSON."""
    return b"event: " + name.encode() + b"\ndata: " + _json(data) + b"\n\n"


def unnamed(data: object) -> bytes:
    """Return an event without a name, as OpenAI sends them."""
    return b"data: " + _json(data) + b"\n\n"


DONE = b"data: [DONE]\n\n"
"""The event that ends a stream in OpenAI's interface."""


class EventStream(Response):
    """A response that streams events as they come; it always closes the events."""

    media_type = "text/event-stream"

    def __init__(self, events: Events, headers: dict[str, str] | None = None) -> None:
        self.status_code, self.background = 200, None
        self.body = b""
        self.init_headers(headers)
        self.raw_headers[:] = [one for one in self.raw_headers if one[0] != b"content-length"]
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, and end them when the client has left; to HEAD, send only the headers.

        Events may never end, and a client of HEAD waits for no body.
        """
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        try:
            await send(start)
            if scope["method"] != "HEAD":
                async for one in self._events:
                    await send({"type": "http.response.body", "body": one, "more_body": True})
        finally:
            await self._events.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def begun(events: Events) -> Events:
    """Wait for the first event, and return all; an error before it can still set the status."""
    try:
        first = await anext(events, None)
    except BaseException:
        await events.aclose()
        raise
    return _after(first, events)


async def _after(first: bytes | None, events: Events) -> Events:
    try:
        if first is not None:
            yield first
        async for one in events:
            yield one
    finally:
        await events.aclose()
