"""The OpenAPI document is true: it has every route, and every example is what the code reads."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
import pytest
from starlette.routing import Route

from giaann_p2p.gateway import openai_replies as replies
from giaann_p2p.gateway.app import gateway
from giaann_p2p.gateway.backend import Facts
from giaann_p2p.gateway.context import context_of
from giaann_p2p.gateway.limits import Limits
from giaann_p2p.gateway.openapi import document
from giaann_p2p.gateway.operations import OPERATIONS, Operation
from giaann_p2p.gateway.rules import Access
from tests.unit.gateway.raw import asked, head, line_to, until
from tests.unit.gateway.serving import Served, Stub, served

DOCUMENT: dict[str, Any] = json.loads(document())


@pytest.fixture
def at() -> Iterator[Served]:
    with served() as found:
        yield found


@pytest.fixture
def locked() -> Iterator[Served]:
    with served(access=Access(key=b"key")) as found:
        yield found


def test_every_route_is_in_the_document_and_nothing_else() -> None:
    app = gateway(context_of(Stub(), Limits(), len), Access()).app
    routes = {
        (method.lower(), re.sub(r":path}", "}", route.path))
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    told = {(one, path) for path, methods in DOCUMENT["paths"].items() for one in methods}
    assert {one for one in routes if one[1] != "/" and not one[1].startswith("/assets")} == told


def test_every_reference_leads_somewhere() -> None:
    found = set(re.findall(r'"#/components/schemas/([^"]+)"', document().decode()))
    assert found
    assert found <= set(DOCUMENT["components"]["schemas"])


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: one.path)
def test_every_example_is_what_the_code_reads_and_writes(one: Operation) -> None:
    assert (one.takes is None) == (one.request is None)
    if one.takes is not None:
        found = msgspec.convert(one.request, one.takes)
        assert set(one.request) <= set(one.takes.__struct_fields__)
        assert found is not None
    if one.reply is not None:
        assert msgspec.to_builtins(msgspec.convert(one.reply, one.gives)) == one.reply


def strictly(data: bytes, kind: Any) -> None:  # noqa: ANN401  (a type)
    """Raise if JSON has a field that its type lacks, or lacks one, at any depth."""
    found = msgspec.json.decode(data, type=kind)
    assert json.loads(msgspec.json.encode(found)) == json.loads(data)


def test_what_is_answered_is_what_the_document_says() -> None:
    chat = b'{"model": "bees", "messages": [{"role": "user", "content": "Bees"}]}'
    answers = {
        "/v1/models": None,
        "/v1/models/{model}": None,
        "/v1/completions": b'{"model": "bees", "prompt": "Bees"}',
        "/v1/chat/completions": chat,
        "/api/info": None,
        "/api/peers": None,
        "/api/columns/{noun}": None,
        "/api/search": None,
        "/api/jobs": None,
    }
    by_path = {one.path: one for one in OPERATIONS}
    with served() as found:
        for path, body in answers.items():
            real = path.replace("{model}", "bees").replace("{noun}", "civil%20war")
            status, data = asked(found.port, by_path[path].method.upper(), real, body or b"")
            assert status == 200, data
            strictly(data.partition(b"\r\n\r\n")[2], by_path[path].gives)
    json_of = {one.path for one in OPERATIONS if one.gives not in (None, dict[str, Any])}
    assert json_of == set(answers)


NUMBERS = [
    (one, name, schema)
    for one in OPERATIONS
    for name, schema in one.query.items()
    if schema["type"] == "integer"
]


def test_every_number_of_a_query_has_its_bounds_in_the_document() -> None:
    assert {(one.path, name) for one, name, _ in NUMBERS} == {
        ("/api/columns/{noun}", "words"),
        ("/api/columns/{noun}", "leads"),
        ("/api/search", "most"),
    }
    for one, name, schema in NUMBERS:
        parameters = DOCUMENT["paths"][one.path][one.method]["parameters"]
        assert [told["schema"] for told in parameters if told["name"] == name] == [schema]


def test_a_number_of_a_query_is_taken_up_to_its_bound_and_no_further(at: Served) -> None:
    for one, name, schema in NUMBERS:
        path = f"{one.path.replace('{noun}', 'civil%20war')}?{name}="
        for number, status in (
            (schema["minimum"], 200),
            (schema["maximum"], 200),
            (schema["minimum"] - 1, 400),
            (schema["maximum"] + 1, 400),
        ):
            found, data = asked(at.port, "GET", f"{path}{number}")
            assert found == status, (name, number, data)
        usual = body_of(asked(at.port, "GET", path.partition("?")[0])[1])
        assert usual == body_of(asked(at.port, "GET", f"{path}{schema['default']}")[1])


def test_other_parameters_of_a_query_and_nouns_are_as_long_as_the_document_says() -> None:
    with served(partial(Stub, training=True)) as found:
        for path, name, body in (("/api/search", "q", b""), ("/api/train", "name", b"Bees.")):
            (one,) = (one for one in OPERATIONS if one.path == path)
            assert one.query[name] == {"type": "string"}  # of any length
            long = f"{path}?{name}={'b' * 5000}"
            assert asked(found.port, one.method.upper(), long, body)[0] == 200
        (noun,) = (one.path_schema for one in OPERATIONS if "{noun}" in one.path)
        for length, status in ((noun["maxLength"], 404), (noun["maxLength"] + 1, 400)):
            assert asked(found.port, "GET", f"/api/columns/{'b' * length}")[0] == status


def body_of(data: bytes) -> bytes:
    return data.partition(b"\r\n\r\n")[2]


def listed(path: str, method: str, data: bytes) -> int:
    """Return the status of a failure, which the document lists, with the JSON that it says."""
    status = data.split(b" ", 2)[1].decode()
    told = DOCUMENT["paths"][path][method]["responses"][status]["content"]["application/json"]
    assert told["schema"] == {"$ref": "#/components/schemas/Error"}
    error = json.loads(body_of(data))["error"]
    wanted = DOCUMENT["components"]["schemas"]["Error"]["properties"]["error"]
    assert set(error) == set(wanted["required"]) == set(wanted["properties"])
    return int(status)


def test_failures_have_a_status_that_the_document_lists(locked: Served) -> None:
    def told(path: str, method: str, body: bytes = b"", **headers: str) -> int:
        headers = {"Authorization": "Bearer key"} | headers
        real = path.replace("{noun}", "bee").replace("{model}", "zorp")
        data = asked(locked.port, method.upper(), real, body, **headers)[1]
        return listed(path, method, data)

    prompt = b'{"model": "bees", "prompt": "Bees"}'
    for one in OPERATIONS:
        if one.path != "/healthz":
            assert told(one.path, one.method, Authorization="") == 401
        assert told(one.path, one.method, Host="evil.example") == 421
        assert told(one.path, one.method, Origin="https://evil.example") == 403
        assert told(one.path, one.method, Content_Length=str(1 << 40)) == 413
        if one.takes is not None and one.path != "/api/train":
            assert told(one.path, one.method, b"[") == 400
    assert told("/api/columns/{noun}", "get") == 404
    assert told("/v1/models/{model}", "get") == 404
    assert told("/v1/completions", "post", prompt.replace(b"bees", b"zorp")) == 404
    assert told("/api/train", "post", b"Bees.") == 403
    locked.backend.fault, locked.backend.fault_at = RuntimeError("secret"), 0
    for path in ("/v1/completions", "/api/prompt"):
        assert told(path, "post", prompt) == 500
    locked.backend.away = "nobody is there"
    for path in ("/v1/completions", "/api/prompt"):
        assert told(path, "post", prompt) == 503
    assert told("/readyz", "get") == 503


def test_events_have_the_types_of_the_document(at: Served) -> None:
    prompt = b'{"prompt": "Bees", "explain": true}'
    told = events(at, "/api/prompt", prompt)
    assert {name for name, _ in told} == {"begun", "token", "done"}
    at.backend.lost, at.backend.fault, at.backend.fault_at = "2 shards", RuntimeError(), 1
    told += events(at, "/api/prompt", prompt)
    at.backend.lost, at.backend.fault = "", None
    assert {name for name, _ in told} == {"begun", "token", "done", "error"}
    with served(partial(Stub, "subwords", training=True)) as found:
        told += events(found, "/api/prompt", prompt)
        assert any(b"rivals" in data for _, data in told)
        types = types_of("/api/prompt")
        for name, data in told:
            strictly(data, types[name])
        told = events(found, "/api/train", b"Bees make honey.")
        assert {name for name, _ in told} == {"progress", "done"}
        types = types_of("/api/train")
        for name, data in told:
            strictly(data, types[name])


def test_what_listeners_hear_has_the_types_of_the_document(at: Served) -> None:
    types = types_of("/api/events")
    with line_to(at.port) as line:
        line.sendall(head("GET", "/api/events", at.port))
        told = EVENT.findall(until(line, b"event: rates") + until(line, b"\n\n"))
    assert {name.decode() for name, _ in told} == set(types)
    for name, data in told:
        strictly(data, types[name.decode()])


EVENT = re.compile(rb"event: (\w+)\ndata: (.*)\n\n")


def events(found: Served, path: str, body: bytes) -> list[tuple[str, bytes]]:
    """Return the events that a request is answered with, by their names."""
    data = asked(found.port, "POST", path, body, Content_Type="text/plain")[1]
    return [(name.decode(), one) for name, one in EVENT.findall(data)]


def types_of(path: str) -> Mapping[str, Any]:
    """Return the types of a path's events, which are those that the document tells."""
    (one,) = (one for one in OPERATIONS if one.path == path)
    content = DOCUMENT["paths"][path][one.method]["responses"]["200"]["content"]
    told = content["text/event-stream"]["schema"]["oneOf"]
    schemas, _ = msgspec.json.schema_components(
        [*one.events.values()], ref_template="#/components/schemas/{name}"
    )
    assert [each["properties"]["event"]["const"] for each in told] == [*one.events]
    assert [each["properties"]["data"] for each in told] == [*schemas]
    return one.events


def test_streamed_chunks_have_their_types() -> None:
    with served() as found:
        body = b'{"model": "bees", "prompt": "Bees", "stream": true}'
        _, data = asked(found.port, "POST", "/v1/completions", body, Connection="close")
        chat = b'{"model":"bees","stream":true,"messages":[{"role":"user","content":"Bees"}]}'
        _, more = asked(found.port, "POST", "/v1/chat/completions", chat)
    for path, name in (("/v1/completions", "Completion"), ("/v1/chat/completions", "ChatPart")):
        content = DOCUMENT["paths"][path]["post"]["responses"]["200"]["content"]
        told = content["text/event-stream"]["schema"]["oneOf"]
        assert [one["properties"]["data"] for one in told] == [
            {"$ref": f"#/components/schemas/{name}"},
            {"$ref": "#/components/schemas/Error"},
            {"const": "[DONE]"},
        ]
    for text, kind in ((data, replies.Completion), (more, replies.ChatPart)):
        assert text.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), text[-30:]
        chunks = re.findall(rb"data: (\{.*\})\n", text)
        assert len(chunks) >= 4
        for chunk in chunks:
            strictly(chunk, kind)


def test_facts_are_those_of_the_document() -> None:
    schema = DOCUMENT["components"]["schemas"]["Facts"]
    assert set(schema["properties"]) == set(Facts.__struct_fields__)
