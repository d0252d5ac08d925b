"""A small HTTP server for a daemon's operator: a few fixed pages for this machine alone.

Each connection carries one request, bounded in size and time. Anything but a GET or HEAD of a known
page gets an error, and so does a request whose Host is not a loopback name. The latter stops DNS
rebinding: a web site can point its own name at 127.0.0.1 and read the answer in its visitor's
browser, but such requests carry the site's name as Host.

prometheus_client's own server will not do: it makes pages in threads, while the event loop changes
the data that they show, and it bounds neither the duration nor the number of its connections.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from giaann_p2p.errors import UsageError

_LOG = logging.getLogger("giaann.http")
_MOST_HEAD = 8192
"""Maximum length of a request's head, in bytes."""
_WITHIN = 5.0
"""Timeout of a whole request with its response, in seconds."""
_MOST_AT_ONCE = 16
"""Maximum number of open connections; a further one is closed at once."""
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    421: "Misdirected Request",
    500: "Internal Server Error",
    503: "Service Unavailable",
}

_LOOPBACK = re.compile(rb"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d*)?", re.IGNORECASE)


class Page(NamedTuple):
    """An HTTP response: its status code, body and content type."""

    status: int
    body: bytes
    type: str = "text/plain; charset=utf-8"


class HttpServer:
    """Serves HTTP pages by path; a page's function is called for each request."""

    def __init__(self, pages: Mapping[str, Callable[[], Page]]) -> None:
        self._pages = pages
        self._server: asyncio.Server | None = None
        self._open = 0

    @property
    def port(self) -> int:
        """The port on which the HTTP server listens; 0 if it does not listen."""
        return self._server.sockets[0].getsockname()[1] if self._server else 0

    async def start(self, host: str, port: int) -> None:
        """Start the HTTP server; raise UsageError if the port cannot be bound."""
        try:
            self._server = await asyncio.start_server(
                self._serve, host, port, limit=_MOST_HEAD, backlog=_MOST_AT_ONCE
            )
        except OSError as error:
            raise UsageError(
                f"metrics cannot be served at {host}:{port}: {error.strerror or error}; "
                "choose another --metrics-port, or leave the option out"
            ) from None

    async def close(self) -> None:
        """Stop the HTTP server from listening."""
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
            pass  # the client has gone, or is too slow
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _page(self, reader: asyncio.StreamReader) -> Page:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            request, *headers = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
            method, target, version = request.decode("ascii").split(" ")
        except (ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return Page(400, b"this is not an HTTP request\n")
        if not version.startswith("HTTP/1."):
            return Page(400, b"only HTTP/1.1 is supported here\n")
        if not _is_for_this_machine(headers):
            return Page(421, b"only requests to localhost or 127.0.0.1 are answered here\n")
        if method not in ("GET", "HEAD"):
            return Page(405, b"only GET and HEAD are allowed here\n")
        page = self._pages.get(target.partition("?")[0])
        if page is None:
            known = "\n".join(self._pages)
            return Page(404, f"there is no such page; these exist:\n{known}\n".encode())
        try:
            found = page()
        except Exception:  # noqa: BLE001  (a failing page must not end the daemon)
            _LOG.exception("the page %s could not be made", target)
            return Page(500, b"this page could not be made; the log says why\n")
        return found if method == "GET" else found._replace(body=b"")


def _is_for_this_machine(headers: list[bytes]) -> bool:
    """Return whether every Host header is a loopback name, with or without a port."""
    named = (header.partition(b":") for header in headers)
    hosts = [value.strip() for name, _, value in named if name.strip().lower() == b"host"]
    return all(map(_LOOPBACK.fullmatch, hosts))


def _response(page: Page) -> bytes:
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
        f"Content-Type: {page.type}\r\nContent-Length: {len(page.body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + page.body
