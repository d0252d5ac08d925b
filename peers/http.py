"""What a daemon tells over HTTP to those who look after it: a few fixed pages, and nothing else.

It is meant for the machine itself or a private network. One request a connection, bounded in size
and time, answered from what is at hand; whatever is not a GET of a page there is gets an error.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from giaann_p2p.errors import UsageError

_LOG = logging.getLogger("giaann.http")
_MOST_HEAD = 8192
_WITHIN = 5.0
"""Seconds for a whole request."""
_MOST_AT_ONCE = 16
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Page(NamedTuple):
    """What is shown."""

    status: int
    body: bytes
    type: str = "text/plain; charset=utf-8"


class HttpServer:
    """Pages by their paths; made afresh for each who asks."""

    def __init__(self, pages: Mapping[str, Callable[[], Page]]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open = 0

    @property
    def port(self) -> int:
        """Where it listens; 0 if it does not."""
        return self._server.sockets[0].getsockname()[1] if self._server else 0

    async def start(self, host: str, port: int) -> None:
        """Begin to listen; UsageError if that cannot be."""
        try:
            self._server = await asyncio.start_server(
                self._serve, host, port, limit=_MOST_HEAD, backlog=_MOST_AT_ONCE
            )
        except OSError as error:
            raise UsageError(
                f"metrics cannot be served at {host}:{port}: {error.strerror or error}; "
                "give another --metrics-port, or none"
            ) from None

    async def close(self) -> None:
        """Listen no longer."""
        if self._server:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            async with asyncio.timeout(_WITHIN):
                if self._open <= _MOST_AT_ONCE:
                    writer.write(_response(await self._page(reader)))
                    await writer.drain()
        except (OSError, TimeoutError):
            pass  # who asked has gone, or is too slow
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _page(self, reader: asyncio.StreamReader) -> Page:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, version = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
        except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return Page(400, b"this is no HTTP request\n")
        if not version.startswith("HTTP/1."):
            return Page(400, b"only HTTP/1.1 is spoken here\n")
        if method not in ("GET", "HEAD"):
            return Page(405, b"there is nothing here but to GET\n")
        page = self._pages.get(target.partition("?")[0])
        if page is None:
            known = "\n".join(self._pages)
            return Page(404, f"there is no such page; there are:\n{known}\n".encode())
        try:
            found = page()
        except Exception:  # noqa: BLE001  (a page that cannot be made must not end the daemon)
            _LOG.exception("the page %s cannot be made", target)
            return Page(500, b"this page cannot be made now; the log says why\n")
        return found if method == "GET" else found._replace(body=b"")


def _response(page: Page) -> bytes:
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
        f"Content-Type: {page.type}\r\nContent-Length: {len(page.body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + page.body
