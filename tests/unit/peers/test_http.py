"""A daemon's pages, asked by real sockets."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from giaann_p2p.errors import UsageError
from peers.http import HttpServer, Page


def serving(ask: Callable[[HttpServer], Awaitable[None]]) -> None:
    async def main() -> None:
        pages = {
            "/healthz": lambda: Page(200, b"ok\n"),
            "/readyz": lambda: Page(503, b"not yet\n"),
            "/broken": lambda: Page(1 // 0, b""),
        }
        server = HttpServer(pages)
        assert server.port == 0
        await server.start("127.0.0.1", 0)
        try:
            await ask(server)
        finally:
            await server.close()
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


async def said(server: HttpServer, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(request)
    await writer.drain()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize(
    ("request_", "status", "body"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", b"200 OK", b"ok\n"),
        (b"GET /healthz?x=1 HTTP/1.0\r\nHost: localhost\r\n\r\n", b"200 OK", b"ok\n"),
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", b"200 OK", b""),
        (b"GET /readyz HTTP/1.1\r\n\r\n", b"503 Service Unavailable", b"not yet\n"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404 Not Found", b"/broken\n"),
        (b"GET /broken HTTP/1.1\r\n\r\n", b"500 Internal Server Error", b"says why\n"),
        (b"POST /healthz HTTP/1.1\r\n\r\n", b"405 Method Not Allowed", b"here\n"),
        (b"GET /healthz HTTP/2\r\n\r\n", b"400 Bad Request", b"here\n"),
        (b"\xff\xfe nonsense\r\n\r\n", b"400 Bad Request", b"request\n"),
        (b"GET " + b"/" * 9000 + b" HTTP/1.1\r\n\r\n", b"400 Bad Request", b"request\n"),
    ],
)
def test_pages(request_: bytes, status: bytes, body: bytes) -> None:
    async def ask(server: HttpServer) -> None:
        answer = await said(server, request_)
        assert answer.startswith(b"HTTP/1.1 " + status + b"\r\n")
        head, _, found = answer.partition(b"\r\n\r\n")
        assert found.endswith(body)
        assert f"Content-Length: {len(found)}".encode() in head

    serving(ask)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("Host: localhost:9100", "200 OK"),
        ("hOsT:LOCALHOST", "200 OK"),
        ("Host: 127.0.0.1:9100", "200 OK"),
        ("Host: 127.8.9.10", "200 OK"),
        ("Host: [::1]:9100", "200 OK"),
        ("Hostess: example.org", "200 OK"),
        ("Host: example.org", "421 Misdirected Request"),
        ("Host: example.org:9100", "421 Misdirected Request"),
        ("Host: localhost.example.org", "421 Misdirected Request"),
        ("Host: 127.0.0.1.example.org", "421 Misdirected Request"),
        ("Host: example.org:80@localhost", "421 Misdirected Request"),
        ("Host: 0.0.0.0", "421 Misdirected Request"),
        ("Host:", "421 Misdirected Request"),
        ("Host: localhost\r\nHost: example.org", "421 Misdirected Request"),
    ],
)
def test_only_this_machines_own_names_are_answered(host: str, status: str) -> None:
    async def ask(server: HttpServer) -> None:
        for page in ("/healthz", "/nothing"):
            answer = await said(server, f"GET {page} HTTP/1.1\r\n{host}\r\n\r\n".encode())
            found = answer.startswith(f"HTTP/1.1 {status}\r\n".encode())
            assert found == (page == "/healthz" or "421" in status)
            assert (b"only requests to localhost" in answer) == ("421" in status)

    serving(ask)


def test_who_says_nothing_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("peers.http._WITHIN", 0.1)

    async def ask(server: HttpServer) -> None:
        assert await said(server, b"GET /healthz HTT") == b""
        assert b"200 OK" in await said(server, b"GET /healthz HTTP/1.1\r\n\r\n")

    serving(ask)


def test_of_too_many_at_once_some_get_nothing() -> None:
    async def ask(server: HttpServer) -> None:
        waiting = [asyncio.open_connection("127.0.0.1", server.port) for _ in range(16)]
        writers = [writer for _, writer in await asyncio.gather(*waiting)]
        await asyncio.sleep(0.05)
        with pytest.raises((ConnectionError, AssertionError)):
            assert await said(server, b"GET /healthz HTTP/1.1\r\n\r\n")
        for writer in writers:
            writer.close()
        await asyncio.sleep(0.05)
        assert b"200 OK" in await said(server, b"GET /healthz HTTP/1.1\r\n\r\n")

    serving(ask)


def test_a_port_that_is_taken_is_told() -> None:
    async def ask(server: HttpServer) -> None:
        with pytest.raises(UsageError, match="choose another --metrics-port"):
            await HttpServer({}).start("127.0.0.1", server.port)

    serving(ask)
