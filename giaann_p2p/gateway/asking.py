"""Asks a gateway on this machine, as commands do; nothing slow is imported here.

It speaks HTTP/1.0, in which a response ends with its connection, so that lines of events can be
read as they come, without decoding chunks.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from giaann_p2p.errors import GiaannError
from giaann_p2p.gateway.whereabouts import Whereabouts

_CONNECTS_WITHIN = 2.0
_ANSWERS_WITHIN = 40.0
"""Seconds for the head of a response: longer than a gateway lets a prompt be silent."""
_LONGEST_LINE = 1 << 24


OVERVIEW = "application/vnd.giaann.overview+msgpack"
"""The media type of a complete overview, for commands of the same release as the gateway."""


class Away(GiaannError):  # noqa: N818  (what it is, not what went wrong)
    """The gateway does not answer, or cannot serve the request; the caller then joins the swarm."""


class _Fault(msgspec.Struct):
    """The field of a refusal that people read."""

    message: str


class _Refusal(msgspec.Struct):
    """The body of a refusal."""

    error: _Fault


class Reply(NamedTuple):
    """A successful response, whose body has not been read yet."""

    headers: dict[str, str]
    body: asyncio.StreamReader


class Event(NamedTuple):
    """A server-sent event."""

    name: str
    data: dict[str, Any]


@asynccontextmanager
async def asked(
    where: Whereabouts, path: str, body: object = None, accept: str = "*/*"
) -> AsyncIterator[Reply]:
    """Send a request, with a body as JSON if there is one; Away unless it succeeds."""
    at = urlsplit(where.url)
    try:
        async with asyncio.timeout(_CONNECTS_WITHIN):
            reader, writer = await asyncio.open_connection(
                at.hostname, at.port, limit=_LONGEST_LINE
            )
    except (OSError, TimeoutError) as error:
        raise Away(f"the gateway at {where.url} does not answer: {error}") from None
    try:
        try:
            writer.write(_request(where, at.netloc, path, body, accept))
            async with asyncio.timeout(_ANSWERS_WITHIN):
                status, headers = await _head(reader)
        except (OSError, ValueError, EOFError, TimeoutError) as error:
            raise Away(f"the gateway at {where.url} failed: {error}") from None
        if status != 200:
            why = await _reason(reader)
            raise Away(f"the gateway at {where.url} answers with {status}{why and f': {why}'}")
        yield Reply(headers, reader)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def whole(reply: Reply) -> bytes:
    """Return the body of a response; Away if it is cut off."""
    try:
        async with asyncio.timeout(_ANSWERS_WITHIN):
            data = await reply.body.read()
    except (OSError, TimeoutError) as error:
        raise Away(f"the gateway broke off: {error}") from None
    if len(data) != int(reply.headers.get("content-length", len(data))):
        raise Away("the gateway broke off")
    return data


async def events(reply: Reply) -> AsyncIterator[Event]:
    """Yield the events of a response as they come; GiaannError if they cannot be read."""
    name = ""
    try:
        async for line in reply.body:
            key, _, value = line.rstrip(b"\r\n").partition(b": ")
            if key == b"event":
                name = value.decode()
            elif key == b"data":
                yield Event(name, msgspec.json.decode(value, type=dict[str, Any]))
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise GiaannError(f"the gateway broke off: {error}") from None


async def _reason(reader: asyncio.StreamReader) -> str:
    """Return why a gateway refused a request, from its body; empty if that cannot be read."""
    try:
        async with asyncio.timeout(_CONNECTS_WITHIN):
            return msgspec.json.decode(await reader.read(), type=_Refusal).error.message
    except (OSError, TimeoutError, ValueError):
        return ""


def _request(where: Whereabouts, host: str, path: str, body: object, accept: str) -> bytes:
    data = b"" if body is None else msgspec.json.encode(body)
    lines = [
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.0",
        f"Host: {host}",
        f"Accept: {accept}",
        "Content-Type: application/json",
        f"Content-Length: {len(data)}",
    ]
    if where.key_file:
        try:
            key = Path(where.key_file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"its key cannot be read: {error}") from None
        lines.append(f"Authorization: Bearer {key}")
    return "\r\n".join([*lines, "", ""]).encode() + data


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Read the head of a response: its status, and its headers by their names in lower case."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    named = (line.partition(":") for line in lines)
    return int(first.split(" ")[1]), {key.lower(): value.strip() for key, _, value in named}
