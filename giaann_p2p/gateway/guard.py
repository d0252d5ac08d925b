"""Guards the application: refuses requests that break a rule or a limit, and ends abandoned ones.

1. The head is judged by `rules` before a byte of the body is read.
2. The body is read here, within bounds on its size and time, so that no handler waits for it.
3. Requests are counted; listeners to events separately, because they stay for hours.
4. If a client leaves, or its request exceeds the time limit, the application's task is cancelled.
5. Each answer gets headers that keep a browser from running, framing or guessing anything foreign.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from giaann_p2p.gateway.body import Gone, TooLong, TooSlow, is_short, read
from giaann_p2p.gateway.failures import Busy, Failure, failure_of, response
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.rules import Access, Head, allowed_headers, is_preflight, refusal

_LOG = logging.getLogger("giaann.http")
EVENTS, TRAIN = "/api/events", "/api/train"
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
_SAFE = (
    (b"content-security-policy", _CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_EXPOSED = b"x-giaann-ignored, x-giaann-lost, retry-after"
"""The headers of responses that pages of allowed sites may read."""
_BASIC = (b"www-authenticate", b'Basic realm="giaann", charset="UTF-8"')
Note = Callable[[str, int, float], None]
"""Callback with the path, the status and the seconds of each request that has ended."""


class Guard:
    """An ASGI application that lets good requests through to another one."""

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        limits: Limits,
        note: Note = lambda path, status, seconds: None,
        *,
        teaches: bool = False,
    ) -> None:
        self._app, self._access, self._limits, self._note = app, access, limits, note
        self._teaches = teaches
        """Whether texts may be sent to be learned; else no request may be as long as one."""
        self.requests = self.listeners = self.uploads = 0
        """Requests that are being served, and among them listeners to events and long texts."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        reply = _Reply(scope, send, self._access)
        began = time.monotonic()
        listens = scope["path"] == EVENTS
        self.requests, self.listeners = self.requests + 1, self.listeners + listens
        try:
            await self._served(scope, receive, reply)
        except Gone:
            pass
        except Exception as error:  # noqa: BLE001  (reported to the client and the log)
            failure = failure_of(error)
            if failure.status == 500:
                _LOG.exception("%s %s failed", scope["method"], scope["path"])
            await reply.fail(failure)
        finally:
            self.requests, self.listeners = self.requests - 1, self.listeners - listens
            seconds = time.monotonic() - began
            _LOG.info(
                "%s %s %d %.0f ms", scope["method"], scope["path"], reply.status, seconds * 1000
            )
            self._note(scope["path"], reply.status, seconds)

    async def _served(self, scope: Scope, receive: Receive, reply: "_Reply") -> None:
        head = Head.of(scope["method"], scope["path"], Headers(scope=scope))
        if failure := refusal(head, self._access) or self._too_many(head):
            await reply.fail(failure)
        elif is_preflight(head):
            await reply.allow()
        else:
            with self._longest(scope) as most:
                body = await self._body(scope, receive, reply, most)
                if body is not None:
                    limit = None if head.path in (EVENTS, TRAIN) else self._limits.request_seconds
                    await self._within(limit, scope, body, receive, reply)

    def _too_many(self, head: Head) -> Failure | None:
        limits, listens = self._limits, head.path == EVENTS
        full = self.requests - self.listeners > limits.requests
        if (self.listeners > limits.listeners) if listens else full:
            text = "this gateway serves as many requests as it can; try again soon"
            return Failure(503, text, "overloaded", "server_error")
        return None

    @contextmanager
    def _longest(self, scope: Scope) -> Iterator[int]:
        """Yield the maximum length of a request's body; Busy if too many long texts are held.

        A long text is counted until its request ends, because it is held as long.
        """
        limits = self._limits
        if not (self._teaches and scope["method"] == "POST" and scope["path"] == TRAIN):
            yield limits.body
            return
        if is_short(scope, limits.body):
            yield limits.upload
            return
        if self.uploads >= limits.uploads:
            raise Busy(f"{limits.uploads} long texts are being learned; send this one again later")
        self.uploads += 1
        try:
            yield limits.upload
        finally:
            self.uploads -= 1

    async def _body(
        self, scope: Scope, receive: Receive, reply: "_Reply", most: int
    ) -> bytes | None:
        """Return the body of a request; None if it was refused."""
        try:
            return await read(scope, receive, most, self._limits.body_seconds)
        except TooLong:
            text = f"the body is longer than {most:,} bytes"
            await reply.fail(Failure(413, text, "request_too_large"))
        except TooSlow:
            await reply.fail(Failure(408, "the body did not come in time", "timeout"))
        return None

    async def _within(
        self, limit: float | None, scope: Scope, body: bytes, receive: Receive, reply: "_Reply"
    ) -> None:
        """Run the application until it has answered, its client has left, or its time is up."""
        work = asyncio.ensure_future(self._app(scope, _again(body), reply.send))
        left = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait([work, left], timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                await work
            elif not left.done():
                text = f"the request took longer than {limit:,.0f} s"
                await reply.fail(Failure(503, text, "timeout", "server_error"))
        finally:
            for task in (work, left):
                task.cancel()
            await asyncio.gather(work, left, return_exceptions=True)


class _Reply:
    """The response to one request: it adds headers, and knows whether it has begun."""

    def __init__(self, scope: Scope, send: Send, access: Access) -> None:
        self._scope, self._send = scope, send
        self.status = 0
        """The status code of the response; 0 until it has begun."""
        origin = Headers(scope=scope).get("origin", "")
        self._origin = origin if origin in access.origins else ""

    async def send(self, message: Message) -> None:
        """Forward a message of the application, with the headers of every response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._more(message)]
        await self._send(message)

    async def fail(self, failure: Failure) -> None:
        """Send a failure, and close the connection; do nothing if a response has begun."""
        if self.status:
            return
        told = response(failure)
        told.raw_headers.append((b"connection", b"close"))
        if failure.status == 401 and b"text/html" in self._accepts():
            told.raw_headers.append(_BASIC)
        await told(self._scope, _nothing, self.send)

    async def allow(self) -> None:
        """Answer the preflight of a browser: a page of an allowed origin may send requests."""
        wanted = Headers(scope=self._scope).get("access-control-request-headers", "")
        headers = [
            (b"access-control-allow-methods", b"GET, POST"),
            (b"access-control-allow-headers", allowed_headers(wanted).encode()),
            (b"access-control-max-age", b"600"),
        ]
        await self.send({"type": "http.response.start", "status": 204, "headers": headers})
        await self.send({"type": "http.response.body", "body": b""})

    def _accepts(self) -> bytes:
        return Headers(scope=self._scope).get("accept", "").encode()

    def _more(self, message: Message) -> list[tuple[bytes, bytes]]:
        more = [*_SAFE]
        if not any(name == b"cache-control" for name, _ in message.get("headers", ())):
            more.append((b"cache-control", b"no-store"))
        if self._origin:
            more.append((b"access-control-allow-origin", self._origin.encode()))
            more.append((b"access-control-expose-headers", _EXPOSED))
            more.append((b"vary", b"origin"))
        return more


def _again(body: bytes) -> Receive:
    """Return a `receive` that gives the application the body that was read, and then waits."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.get_running_loop().create_future()  # the guard cancels it in time
        raise AssertionError

    return receive


async def _left(receive: Receive) -> None:
    """Return when the client has left."""
    with suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
