"""Clients of a gateway that each send the same request again and again while its swarm dies."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_PAUSE = 0.2
"""Seconds between a reply and the next request, so that a machine of two cores can do the rest."""


class Request(NamedTuple):
    """A request, and how the body of its reply ends if all went well."""

    method: str
    path: str
    body: dict[str, object] | None = None
    end: bytes = b""


class Reply(NamedTuple):
    """What a request came to."""

    status: int
    seconds: float
    """Until the last byte of the reply, or until the connection failed."""
    body: bytes
    error: str = ""
    """Why there was no whole reply; empty if there was."""


class Client:
    """A thread that sends a request again and again, until it is told that all is well again."""

    def __init__(self, at: str, request: Request, within: float) -> None:
        self.replies: list[Reply] = []
        self.sent = threading.Event()
        """Set once the first request is on its way."""
        self._at, self._request, self._within = at, request, within
        self._well, self._left = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def end(self, within: float) -> None:
        """Wait until a request succeeds that was sent from now on, and end."""
        self._well.set()
        self._thread.join(within)
        assert not self._thread.is_alive(), (self._request, self.replies[-1:])

    def leave(self) -> None:
        """Send no further request."""
        self._left.set()

    def _go_on(self) -> None:
        while not self._left.is_set():
            last = self._well.is_set()
            reply = self._reply()
            self.replies.append(reply)
            if last and reply.status == 200 and reply.body.endswith(self._request.end):
                return
            self._left.wait(_PAUSE)

    def _reply(self) -> Reply:
        request, began, status, body = self._request, time.monotonic(), 0, b""
        line = http.client.HTTPConnection(self._at, timeout=self._within)
        try:
            sent = None if request.body is None else json.dumps(request.body)
            line.request(request.method, request.path, sent)
            self.sent.set()
            found = line.getresponse()
            status, body = found.status, found.read()
        except (OSError, http.client.HTTPException) as error:
            return Reply(status, time.monotonic() - began, body, repr(error))
        finally:
            line.close()
        return Reply(status, time.monotonic() - began, body)


@contextmanager
def asking(at: str, requests: list[Request], within: float) -> Iterator[list[Client]]:
    """Keep clients asking for as long as the context lasts, and then until each succeeds."""
    clients = [Client(at, request, within) for request in requests]
    try:
        for client in clients:
            assert client.sent.wait(within)
        yield clients
        for client in clients:
            client.end(within)
    finally:
        for client in clients:
            client.leave()
