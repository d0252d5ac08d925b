"""A gateway that is told to end: answers under way come to their end, listeners are let go."""

from socket import create_connection

from giaann_p2p.gateway.limits import Limits
from tests.unit.gateway.raw import head, line_to, rest_of, until
from tests.unit.gateway.serving import WITHIN, Served, served

PROMPT = b'{"model": "bees", "prompt": "Bees", "stream": true}'


def begin(found: Served) -> bytes:
    """Return the request of a stream that is held before its second token."""
    found.backend.held_at = 1
    length = str(len(PROMPT))
    return head("POST", "/v1/completions", found.port, Content_Length=length) + PROMPT


def takes_more(found: Served) -> bool:
    """Return whether one more request is answered."""
    try:
        with create_connection(("127.0.0.1", found.port), WITHIN) as line:
            line.sendall(head("GET", "/healthz", found.port))
            return bool(line.recv(1))
    except ConnectionError:
        return False


def test_answers_under_way_end_and_listeners_are_let_go_and_nobody_else_comes() -> None:
    with served(limits=Limits(drain_seconds=60.0)) as found:
        with line_to(found.port) as stream, line_to(found.port) as listener:
            stream.sendall(begin(found))
            found.run(found.backend.holding.wait())
            listener.sendall(head("GET", "/api/events", found.port))
            until(listener, b"event: status")
            found.stop()
            rest_of(listener)  # it ends, though there is no end of events
            while takes_more(found):
                pass
            found.loop.call_soon_threadsafe(found.backend.go.set)
            data = rest_of(stream)
        assert b'" 3"' in data
        assert data.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


def test_an_answer_that_does_not_end_is_cut_off_in_time() -> None:
    with served(limits=Limits(drain_seconds=1.0)) as found:
        with line_to(found.port) as stream:
            stream.sendall(begin(found))
            found.run(found.backend.holding.wait())
            found.stop()
            data = rest_of(stream)
        assert b'" 1"' in data
        assert b"[DONE]" not in data
