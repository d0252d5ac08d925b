"""`/api`: what the page and commands ask."""

import asyncio
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from giaann_p2p.gateway.events import Feed
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.net.errors import Unreachable
from tests.unit.gateway.raw import asked, head, line_to, rest_of, until
from tests.unit.gateway.serving import Served, Stub, served

EVENT = re.compile(rb"event: (\w+)\ndata: (.*)\n\n")


@pytest.fixture(scope="module")
def at() -> Iterator[Served]:
    with served() as found:
        yield found


def told(at: Served, path: str, **headers: str) -> Any:  # noqa: ANN401  (JSON)
    status, data = asked(at.port, "GET", path, **headers)
    assert status == 200, data
    return json.loads(data.partition(b"\r\n\r\n")[2])


def events_in(data: bytes) -> list[tuple[str, Any]]:
    return [(name.decode(), json.loads(one)) for name, one in EVENT.findall(data)]


def test_what_is_served_and_how_it_is(at: Served) -> None:
    assert told(at, "/api/info")["model"] == "bees"
    assert told(at, "/api/status")["verdict"] == "healthy"
    assert told(at, "/api/jobs")["jobs"][0]["name"] == "a text"


def test_a_column_is_shown_or_not_there(at: Served) -> None:
    found = told(at, "/api/columns/civil%20war?words=3&leads=2")
    assert found["words"][0] == {
        "feature": None,
        "occurrences": 3,
        "connections": 2,
        "leads": [],
    }
    status, data = asked(at.port, "GET", "/api/columns/zorp")
    assert status == 404
    assert b"'zorp' was never learned" in data
    for bad in ("words=0", "words=many", "leads=99999999999999999999", "words=-1"):
        assert asked(at.port, "GET", f"/api/columns/bee?{bad}")[0] == 400
    assert asked(at.port, "GET", "/api/columns/%20")[0] == 400


def test_a_search_brings_the_most_frequent_first(at: Served) -> None:
    found = told(at, "/api/search?q=Be&most=1")
    assert found == {"found": [{"noun": "beer", "occurrences": 9}], "of": 2, "note": ""}
    assert told(at, "/api/search")["of"] == 3


def test_a_prompt_is_told_token_by_token(at: Served) -> None:
    _, data = asked(at.port, "POST", "/api/prompt", b'{"prompt": "Bees zorp", "max_tokens": 2}')
    names = events_in(data)
    assert [name for name, _ in names] == ["begun", "token", "token", "done"]
    assert names[0][1]["unknown"] == ["zorp"]
    assert names[0][1]["cost"]["ms"] == 0.005
    first = names[1][1]
    assert (first["text"], first["concept"], first["feature"]) == (" 1", "number", "1")
    assert (first["tier"], first["candidates"], first["cost"]["ms"]) == ("exact", 3, 0.007)
    assert first["probability"] == 0.5
    assert names[3][1] == {"stopped": "limit", "text": " 1 2"}


def test_a_prompt_of_subwords_has_probabilities_and_takes_their_options() -> None:
    body = {
        "prompt": "Bees",
        "temperature": 0.5,
        "top_k": 3,
        "seed": 4,
        "stop": "x",
        "timing": None,
    }
    with served(partial(Stub, "subwords")) as found:
        _, data = asked(found.port, "POST", "/api/prompt", json.dumps(body).encode())
        assert events_in(data)[1][1]["probability"] == 0.5
        (manner,) = found.backend.manners
    assert (manner.sampling.temperature, manner.sampling.top_k) == (0.5, 3)
    assert (manner.sampling.seed, manner.sampling.stop) == (4, ("x",))


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": ""},
        {"prompt": "nothing"},
        {"prompt": "Bees", "timing": "never"},
        {"prompt": "Bees", "temperature": 1},
        {"prompt": "Bees", "temperature": -1},
        {"prompt": "Bees", "top_p": 0},
        {"prompt": "Bees", "max_tokens": 100_000},
        {"prompt": "Bees", "beam": {"width": 0, "depth": 1}},
        {},
    ],
)
def test_a_wrong_prompt_is_refused_before_any_event(at: Served, body: dict[str, Any]) -> None:
    status, data = asked(at.port, "POST", "/api/prompt", json.dumps(body).encode())
    assert status == 400, data
    assert "message" in json.loads(data.partition(b"\r\n\r\n")[2])["error"]


def test_an_error_in_the_middle_is_the_last_event() -> None:
    with served() as found:
        found.backend.fault, found.backend.fault_at = Unreachable("gone"), 1
        found.backend.lost = "2 shards"
        _, data = asked(found.port, "POST", "/api/prompt", b'{"prompt": "Bees"}')
    names = events_in(data)
    assert [name for name, _ in names] == ["begun", "token", "error"]
    assert names[0][1]["lost"] == "2 shards"
    assert names[2][1] == {"message": "gone", "code": "swarm_unavailable"}


def test_a_text_is_taught_only_where_that_is_allowed(at: Served) -> None:
    text = b'{"name": "a", "text": "Bees make honey."}'
    status, data = asked(at.port, "POST", "/api/train", text, Content_Type="application/json")
    assert (status, b"--allow-training" in data) == (403, True)
    with served(partial(Stub, training=True), limits=Limits(upload=64)) as found:
        _, data = asked(found.port, "POST", "/api/train", text, Content_Type="application/json")
        assert [name for name, _ in events_in(data)] == ["progress", "done"]
        assert events_in(data)[1][1] == {"name": "a", "letters": 16}
        _, data = asked(
            found.port, "POST", "/api/train?name=b", b"Bees fly.", Content_Type="text/plain"
        )
        assert events_in(data)[1][1] == {"name": "b", "letters": 9}
        assert asked(found.port, "POST", "/api/train", b"\xff\xfe")[0] == 400
        assert asked(found.port, "POST", "/api/train", b"  ")[0] == 400
        assert asked(found.port, "POST", "/api/train", b"x" * 65)[0] == 413


def part(disposition: str, content: str) -> str:
    return f"--xx\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{content}\r\n"


FILE = part('name="file"; filename="Bücher.txt"', "Bees\r\n\r\nmake --xx honey.")


@pytest.mark.parametrize(
    ("query", "form", "name"),
    [
        ("", f"{FILE}--xx--\r\n", "Bücher.txt"),
        ("?name=b", f'; filename="no"\r\n\r\n{FILE}--xx--', "b"),
        ("", part('name="a"', "field") + FILE + part('name="b"', "field") + "--xx--", "Bücher.txt"),
    ],
)
def test_a_form_teaches_its_file_alone(query: str, form: str, name: str) -> None:
    kind = "multipart/form-data; boundary=xx"
    with served(partial(Stub, training=True)) as found:
        path = f"/api/train{query}"
        status, data = asked(found.port, "POST", path, form.encode(), Content_Type=kind)
    assert status == 200, data
    assert events_in(data)[1][1] == {"name": name, "letters": 24}


@pytest.mark.parametrize(
    ("kind", "form", "why"),
    [
        ("; boundary=xx", FILE, "cut off"),
        ("; boundary=xx", FILE + FILE + "--xx--", "it has 2"),
        ("; boundary=xx", part('name="text"', "Bees fly.") + "--xx--", "it has 0"),
        ("; boundary=xx", part('name="a"', "b") * 99 + FILE + "--xx--", "more than 64 parts"),
        ("; boundary=yy", f"{FILE}--xx--", "cut off"),
        ("", f"{FILE}--xx--", "no boundary"),
        ("; boundary=xx", part('filename=""', "") + "--xx--", "the text is empty"),
    ],
)
def test_a_form_without_one_whole_file_teaches_nothing(kind: str, form: str, why: str) -> None:
    with served(partial(Stub, training=True)) as found:
        given = f"multipart/form-data{kind}"
        status, data = asked(found.port, "POST", "/api/train", form.encode(), Content_Type=given)
    assert status == 400, data
    assert why in json.loads(data.partition(b"\r\n\r\n")[2])["error"]["message"]


def test_a_gateway_whose_swarm_is_away_says_so_and_comes_back(at: Served) -> None:
    with served() as found:
        assert asked(found.port, "GET", "/readyz")[0] == 200
        found.backend.away = "no compute peer is there"
        for method, path, body in (
            ("GET", "/readyz", b""),
            ("POST", "/v1/completions", b'{"model": "bees", "prompt": "Bees"}'),
            ("POST", "/api/prompt", b'{"prompt": "Bees"}'),
        ):
            status, data = asked(found.port, method, path, body)
            assert status == 503
            assert b"no compute peer is there" in data
            assert b"retry-after: " in data
        assert asked(found.port, "GET", "/healthz")[0] == 200
        found.backend.away = ""
        assert asked(found.port, "POST", "/api/prompt", b'{"prompt": "Bees"}')[0] == 200


def test_listeners_hear_the_state_at_once_and_what_changes() -> None:
    with served() as found, line_to(found.port) as line, line_to(found.port) as other:
        for one in (line, other):
            one.sendall(head("GET", "/api/events", found.port))
        for one in (line, other):
            data = until(one, b"event: rates")
            names = {name for name, _ in events_in(data)}
            assert names >= {"status", "peers", "jobs"}
        found.backend.verdict = "degraded"
        for one in (line, other):
            assert b'"degraded"' in until(one, b'"degraded"')
        found.stop()
        rest_of(line)  # an end, though the stream has none by itself
        rest_of(other)


def test_a_listener_who_comes_after_all_have_left_hears_the_state_too() -> None:
    with served() as found:
        for _ in range(3):
            with line_to(found.port) as line:
                line.sendall(head("GET", "/api/events", found.port))
                until(line, b"event: rates")
            feed = found.gateway.feed
            found.run(_ended(feed))
        assert asked(found.port, "GET", "/healthz")[0] == 200


async def _ended(feed: Feed) -> None:
    """Wait until nobody looks any more, because nobody listens."""
    if feed.looking is not None:
        await asyncio.wait([feed.looking])


def test_metrics_count_requests_by_route_and_tokens(at: Served) -> None:
    asked(at.port, "GET", "/api/columns/one")
    asked(at.port, "GET", "/api/columns/two")
    asked(at.port, "GET", "/no/such/page")
    asked(at.port, "POST", "/api/prompt", b'{"prompt": "Bees"}')
    _, data = asked(at.port, "GET", "/metrics")
    text = data.decode()
    assert 'giaann_gateway_requests_total{route="/api/columns/{noun:path}",status="404"}' in text
    assert 'route="other",status="404"' in text
    assert "no/such" not in text
    assert re.search(r"giaann_gateway_tokens_total [1-9]", text)
    assert "giaann_gateway_prompts_now 0.0" in text


def test_the_page_is_served_once(at: Served) -> None:
    status, data = asked(at.port, "GET", "/")
    assert status == 200
    tag = re.search(rb'etag: ("[0-9a-f]+")', data)
    assert tag is not None
    again, data = asked(at.port, "GET", "/", If_None_Match=tag[1].decode())
    assert (again, data.partition(b"\r\n\r\n")[2]) == (304, b"")


def test_the_head_of_the_events_is_answered_at_once_and_nobody_listens() -> None:
    with served() as found, line_to(found.port) as line:
        line.sendall(head("HEAD", "/api/events", found.port, Connection="keep-alive"))
        told = until(line, b"\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 200")
        assert b"text/event-stream" in told
        line.sendall(head("GET", "/healthz", found.port))  # the connection serves what comes next
        assert rest_of(line).endswith(b"\r\n\r\nok\n")
        assert found.gateway.feed.looking is None
