"""Bytes to a gateway and back, without a client that would mend what is wrong on purpose."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.unit.gateway.serving import WITHIN


@contextmanager
def line_to(port: int, buffer: int = 0) -> Iterator[socket.socket]:
    """Open a connection; `buffer` bounds what its system takes unread."""
    line = socket.socket()
    if buffer:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    line.settimeout(WITHIN)
    line.connect(("127.0.0.1", port))
    with line:
        yield line


def rest_of(line: socket.socket) -> bytes:
    """Return all that comes until the other side closes; an abrupt end is an end."""
    data = b""
    try:
        while part := line.recv(1 << 16):
            data += part
    except ConnectionResetError:
        pass
    return data


def until(line: socket.socket, end: bytes) -> bytes:
    """Return what comes up to some bytes."""
    data = b""
    while end not in data:
        part = line.recv(1 << 16)
        assert part, data
        data += part
    return data


def head(method: str, path: str, port: int, **headers: str) -> bytes:
    """Return the head of a request that asks for the connection's end."""
    named = {"Host": f"127.0.0.1:{port}", "Connection": "close"}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def asked(
    port: int, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, bytes]:
    """Send a request; return the status and the whole response."""
    if body:
        headers.setdefault("Content_Length", str(len(body)))
    with line_to(port) as line:
        line.sendall(head(method, path, port, **headers) + body)
        data = rest_of(line)
    return int(data.split(b" ", 2)[1]), data
