"""What a stranger's web site, a broken client or a flood does to a gateway: nothing lasting."""

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial

import pytest

from giaann_p2p.cli.serve import listening_of
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.rules import Access, Head, is_own, names_this_machine
from tests.unit.gateway.raw import asked, head, line_to, rest_of, until
from tests.unit.gateway.serving import Served, Stub, served

KEY = "a-key-of-many-letters"
PROMPT = b'{"model": "bees", "prompt": "Bees"}'


@pytest.fixture(scope="module")
def at() -> Iterator[Served]:
    """A gateway without a key, on loopback."""
    with served(access=Access(origins=frozenset({"https://chat.example"}))) as found:
        yield found


@pytest.fixture(scope="module")
def locked() -> Iterator[Served]:
    with served(access=Access(key=KEY.encode())) as found:
        yield found


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1:80", "::", ""]
)
def test_a_name_that_was_bound_to_this_machine_is_refused(at: Served, host: str) -> None:
    status, data = asked(at.port, "GET", "/api/info", Host=host)
    assert status == 421
    assert b"wrong_host" in data


def test_the_name_that_may_be_added_is_told_without_its_port(at: Served) -> None:
    _, data = asked(at.port, "GET", "/api/info", Host="bees.example:8440")
    assert b"'bees.example' is not a name of this gateway; --allow-host adds one" in data


@pytest.mark.parametrize("given", ["bees.example", "Bees.Example:8440"])
def test_a_name_is_allowed_however_it_is_written(given: str) -> None:
    access = listening_of("127.0.0.1:0", None, [], [given]).access
    assert access.hosts == {"bees.example"}
    assert names_this_machine("BEES.example:99", access)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://Chat.Example", "https://chat.example"),
        ("HTTPS://chat.example:443", "https://chat.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_an_origin_is_allowed_however_it_is_written(given: str, sent: str) -> None:
    access = listening_of("127.0.0.1:0", None, [given], []).access
    assert is_own(Head("GET", "/", host="127.0.0.1", origin=sent), access)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9", "[::1]:8440", "127.9.9.9"])
def test_names_of_this_machine_are_taken(at: Served, host: str) -> None:
    assert asked(at.port, "GET", "/api/info", Host=host)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://["},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "navigate"},
    ],
)
def test_a_foreign_page_can_send_nothing(at: Served, headers: dict[str, str]) -> None:
    assert asked(at.port, "POST", "/v1/completions", PROMPT, **headers)[0] == 403
    assert asked(at.port, "GET", "/api/status", **headers)[0] == 403
    assert at.backend.manners == []


def test_a_link_to_the_page_may_be_followed_and_the_page_may_ask(at: Served) -> None:
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert asked(at.port, "GET", "/", **link)[0] == 200
    own = {"Origin": at.url, "Sec_Fetch_Site": "same-origin"}
    assert asked(at.port, "GET", "/api/info", **own)[0] == 200


def test_an_origin_that_is_allowed_gets_its_headers(at: Served) -> None:
    origin = "https://chat.example"
    status, data = asked(at.port, "OPTIONS", "/v1/completions", Origin=origin)
    assert status == 204
    assert b"access-control-allow-headers: authorization, content-type" in data
    status, data = asked(at.port, "GET", "/v1/models", Origin=origin, Sec_Fetch_Site="cross-site")
    assert status == 200
    assert b"access-control-allow-origin: https://chat.example" in data
    assert b"access-control-expose-headers: x-giaann-ignored, x-giaann-lost, retry-after" in data
    assert b"access-control" not in asked(at.port, "GET", "/v1/models", Origin=at.url)[1]


@pytest.mark.parametrize(
    ("wanted", "more"),
    [
        ("content-type, X-Stainless-Lang,x-stainless-os", ", x-stainless-lang, x-stainless-os"),
        ("x-a; drop", ""),
        ("x-a,,x-b", ""),
        (", ".join(f"x-{number}" for number in range(1000)), ""),
    ],
)
def test_a_page_that_is_allowed_may_send_the_headers_that_it_announces(
    at: Served, wanted: str, more: str
) -> None:
    named = {"Origin": "https://chat.example", "Access_Control_Request_Headers": wanted}
    _, data = asked(at.port, "OPTIONS", "/v1/completions", **named)
    assert f"access-control-allow-headers: authorization, content-type{more}\r\n".encode() in data


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer wrong", f"Basic {KEY}", f"Digest {KEY}"])
def test_without_the_key_there_is_nothing_but_health(locked: Served, given: str) -> None:
    headers = {"Authorization": given} if given else {}
    for path in ("/v1/models", "/api/info", "/", "/metrics", "/openapi.json", "/readyz"):
        assert asked(locked.port, "GET", path, **headers)[0] == 401
    assert asked(locked.port, "POST", "/v1/completions", PROMPT, **headers)[0] == 401
    assert asked(locked.port, "GET", "/healthz", **headers)[0] == 200


def test_the_key_opens_and_a_browser_is_asked_for_it(locked: Served) -> None:
    basic = b64encode(f"anyone:{KEY}".encode()).decode()
    for given in (f"Bearer {KEY}", f"bearer  {KEY} ", f"Basic {basic}"):
        assert asked(locked.port, "GET", "/v1/models", Authorization=given)[0] == 200
    assert b"www-authenticate: Basic" in asked(locked.port, "GET", "/", Accept="text/html")[1]
    assert b"www-authenticate" not in asked(locked.port, "GET", "/v1/models")[1]


def test_a_gigabyte_is_refused_before_it_comes(at: Served) -> None:
    with line_to(at.port) as line:
        line.sendall(head("POST", "/v1/completions", at.port, Content_Length=str(1 << 30)))
        data = rest_of(line)
    assert data.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in data.lower()
    huge = "9" * 5000
    with line_to(at.port) as line:
        line.sendall(head("POST", "/v1/completions", at.port, Content_Length=huge))
        assert rest_of(line)[9:12] in (b"413", b"400")


@pytest.mark.parametrize(("method", "training"), [("GET", True), ("PUT", True), ("POST", False)])
def test_only_a_text_that_may_be_taught_may_be_long(method: str, training: bool) -> None:
    limits = Limits(body=64, drain_seconds=1.0)
    with served(partial(Stub, training=training), limits=limits) as found:
        assert asked(found.port, method, "/api/train", b"x" * 65)[0] == 413
        assert asked(found.port, "POST", "/v1/completions", b"x" * 65)[0] == 413


def test_few_long_texts_are_held_at_once_and_short_ones_beside_them() -> None:
    limits = Limits(body=64, uploads=2, drain_seconds=1.0)
    with served(partial(Stub, training=True), limits=limits) as found, ExitStack() as held:
        line = held.enter_context(line_to(found.port))
        line.sendall(head("POST", "/api/train", found.port, Content_Length="99"))
        chunked = held.enter_context(line_to(found.port))
        chunked.sendall(head("POST", "/api/train", found.port, Transfer_Encoding="chunked"))
        _wait(lambda: found.gateway.guard.uploads == 2)
        status, data = asked(found.port, "POST", "/api/train", b"bee " * 20)
        assert (status, b"retry-after" in data) == (429, True)
        assert asked(found.port, "POST", "/api/train", b"Bees fly.")[0] == 200
        line.sendall(b"bee" * 33)
        assert b"200 OK" in rest_of(line)
        _wait(lambda: found.gateway.guard.uploads == 1)
        assert asked(found.port, "POST", "/api/train", b"bee " * 20)[0] == 200


def _wait(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.01)


def test_a_body_in_chunks_without_an_end_is_cut_off(at: Served) -> None:
    sent, chunk = 0, b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with line_to(at.port) as line:
        line.sendall(head("POST", "/v1/completions", at.port, Transfer_Encoding="chunked"))
        with suppress(ConnectionError):
            while sent < 1 << 30:
                line.sendall(chunk)
                sent += len(chunk)
        data = b""
        with suppress(ConnectionError):
            data = rest_of(line)
    assert sent < 1 << 26  # what buffers on the way may hold
    assert not data or data.startswith(b"HTTP/1.1 413")


def test_a_head_without_an_end_is_cut_off_and_so_are_slow_bodies() -> None:
    limits = Limits(head_seconds=0.3, body_seconds=0.3, drain_seconds=1.0)
    with served(limits=limits) as found, ExitStack() as held:
        slow = held.enter_context(line_to(found.port))
        slow.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        silent = held.enter_context(line_to(found.port))
        body = held.enter_context(line_to(found.port))
        body.sendall(head("POST", "/v1/completions", found.port, Content_Length="5000") + b"{")
        assert rest_of(slow) == b""
        assert rest_of(silent) == b""
        assert rest_of(body).startswith(b"HTTP/1.1 408")


def test_a_second_head_on_a_connection_must_end_too() -> None:
    limits = Limits(head_seconds=0.3, drain_seconds=1.0)
    with served(limits=limits) as found, line_to(found.port) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert until(line, b"ok\n").startswith(b"HTTP/1.1 200")
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: loc")
        assert rest_of(line) == b""


def test_a_head_that_is_too_long_is_refused(at: Served) -> None:
    with line_to(at.port) as line:
        with suppress(ConnectionError):
            line.sendall(b"GET / HTTP/1.1\r\nX: " + b"y" * (1 << 20))
        data = rest_of(line)
    assert not data or data.startswith(b"HTTP/1.1 400")
    assert asked(at.port, "GET", "/healthz")[0] == 200


def test_more_connections_than_allowed_are_closed_and_the_rest_served() -> None:
    with served(limits=Limits(connections=20, drain_seconds=1.0)) as found, ExitStack() as held:
        lines = [held.enter_context(line_to(found.port)) for _ in range(20)]
        for line in lines:
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b"200 OK" in until(line, b"ok\n")
            line.sendall(b"GET /healthz HTTP/1.1\r\n")  # begun again, so it stays
        for _ in range(10):
            with line_to(found.port) as more:
                with suppress(ConnectionError):
                    more.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert rest_of(more) == b""
        lines[0].sendall(b"Host: localhost\r\n\r\n")
        assert b"200 OK" in lines[0].recv(1 << 16)


def test_a_reader_that_does_not_read_is_dropped_and_its_prompt_ended() -> None:
    def chatty() -> Stub:
        stub = Stub()
        stub.length = 65_000  # more than any buffer on the way holds
        return stub

    limits = Limits(write_seconds=0.3, drain_seconds=1.0, tokens=65_000)
    with served(chatty, limits=limits) as found:
        body = b'{"model": "bees", "prompt": "Bees", "stream": true, "max_tokens": 65000}'
        with line_to(found.port, buffer=2048) as line:
            length = str(len(body))
            line.sendall(head("POST", "/v1/completions", found.port, Content_Length=length) + body)
            found.run(found.backend.over.wait())
        assert found.backend.now == 0


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../rules.py",
        "/assets/..%2frules.py",
        "/assets/%2e%2e/rules.py",
        "/assets/....//rules.py",
        "/assets//etc/passwd",
        "/../../etc/passwd",
        "/assets/%00",
        "/assets/..\\rules.py",
        "/assets/",
        "/page/index.html",
    ],
)
def test_no_path_leads_out_of_the_page(at: Served, path: str) -> None:
    status, data = asked(at.port, "GET", path)
    assert status in (400, 404)
    assert b"import" not in data


def test_every_answer_tells_browsers_to_trust_nothing(at: Served) -> None:
    for path in ("/", "/api/info", "/nowhere", "/v1/models"):
        _, data = asked(at.port, "GET", path)
        told = data.partition(b"\r\n\r\n")[0].lower()
        assert b"x-content-type-options: nosniff" in told
        assert b"content-security-policy: default-src 'none'" in told
        assert b"unsafe" not in told
        assert b"frame-ancestors 'none'" in told


def test_a_method_or_path_that_is_not_there_says_so(at: Served) -> None:
    assert asked(at.port, "DELETE", "/v1/models")[0] == 405
    assert asked(at.port, "GET", "/v1/completions")[0] == 405
    assert b"not_found" in asked(at.port, "GET", "/nowhere")[1]


def test_as_many_requests_as_allowed_are_served_and_listeners_apart() -> None:
    limits = Limits(requests=1, listeners=1, drain_seconds=1.0)
    with served(partial(Stub), limits=limits) as found, ExitStack() as held:
        found.backend.held_at = 0
        busy = held.enter_context(line_to(found.port))
        length = str(len(PROMPT))
        busy.sendall(head("POST", "/v1/completions", found.port, Content_Length=length) + PROMPT)
        found.run(found.backend.holding.wait())
        status, data = asked(found.port, "GET", "/healthz")
        assert (status, b"retry-after" in data) == (503, True)
        heard = held.enter_context(line_to(found.port))
        heard.sendall(head("GET", "/api/events", found.port))
        assert b"200 OK" in heard.recv(1 << 16)
        assert asked(found.port, "GET", "/api/events")[0] == 503
        found.loop.call_soon_threadsafe(found.backend.go.set)
        assert b"200 OK" in rest_of(busy)
        assert asked(found.port, "GET", "/healthz")[0] == 200
