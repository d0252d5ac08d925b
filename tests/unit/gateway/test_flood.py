"""More connections at once than a gateway takes: those before them are served, and it recovers."""

import resource
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.server import allow_files
from tests.unit.gateway.raw import asked, head, line_to, rest_of
from tests.unit.gateway.serving import WITHIN, Served, served

MANY = 10_000
OTHERS = 2048
"""Files besides the clients' and the gateway's: those that it has accepted, and is to close."""
PROMPT = b'{"model": "bees", "prompt": "Bees"}'


@pytest.fixture
def many() -> Iterator[int]:
    """As many connections as this process may hold at both ends, while this is in use."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    allow_files(2 * MANY)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    yield min(MANY, max(200, (files - OTHERS) * 4 // 5))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.slow
def test_connections_beyond_the_bound_are_closed_and_those_before_them_answered(many: int) -> None:
    most = min(Limits().connections, many // 4)
    limits = Limits(connections=most, head_seconds=10 * WITHIN, drain_seconds=1.0)
    with served(limits=limits) as found, line_to(found.port) as before:
        found.backend.held_at = 0
        length = str(len(PROMPT))
        before.sendall(head("POST", "/v1/completions", found.port, Content_Length=length) + PROMPT)
        found.run(found.backend.holding.wait())
        with ExitStack() as held:
            lines = [held.enter_context(line_to(found.port)) for _ in range(many)]
            closed = closed_of(lines, many - most + 1)
            assert closed == {*lines[most - 1 :]}  # the first ones have all the places but one
            assert connections(found) == most
            with line_to(found.port) as more:
                assert rest_of(more) == b""
            found.loop.call_soon_threadsafe(found.backend.go.set)
            assert b" 1 2 3" in rest_of(before)
        assert answers(found)


def test_silent_connections_make_place_for_others_in_time() -> None:
    limits = Limits(connections=20, head_seconds=0.5, drain_seconds=1.0)
    with served(limits=limits) as found, ExitStack() as held:
        lines = [held.enter_context(line_to(found.port)) for _ in range(40)]
        assert answers(found)  # though no client leaves
        assert closed_of(lines, 40) == {*lines}


def closed_of(lines: list[socket.socket], count: int) -> set[socket.socket]:
    """Return the connections that the gateway closes first, as soon as there are so many."""
    closed = set[socket.socket]()
    with selectors.DefaultSelector() as selector:
        for line in lines:
            selector.register(line, selectors.EVENT_READ)
        while len(closed) < count:
            ready = selector.select(WITHIN)
            assert ready, f"{len(closed):,} of {len(lines):,} are closed"
            for key, _ in ready:
                line = key.fileobj
                assert isinstance(line, socket.socket)
                assert rest_of(line) == b""
                selector.unregister(line)
                closed.add(line)
    return closed


def connections(found: Served) -> int:
    """Return how many connections the gateway has open."""

    async def count() -> int:
        return len(found.server.server_state.connections)

    return found.run(count())


def answers(found: Served) -> bool:
    """Return once a new client is answered."""
    status = 0
    while status != 200:
        with suppress(ConnectionError, IndexError):  # closed at once
            status = asked(found.port, "GET", "/healthz")[0]
    return True
