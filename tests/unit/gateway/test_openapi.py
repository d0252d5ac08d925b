"""The OpenAPI document is true: it has every route, and every example is what the code reads."""

import json
import re
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
from tests.unit.gateway.raw import asked
from tests.unit.gateway.serving import Stub, served

DOCUMENT: dict[str, Any] = json.loads(document())


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


def test_streamed_chunks_have_their_types() -> None:
    with served() as found:
        body = b'{"model": "bees", "prompt": "Bees", "stream": true}'
        _, data = asked(found.port, "POST", "/v1/completions", body, Connection="close")
        chat = b'{"model":"bees","stream":true,"messages":[{"role":"user","content":"Bees"}]}'
        _, more = asked(found.port, "POST", "/v1/chat/completions", chat)
    for text, kind in ((data, replies.Completion), (more, replies.ChatPart)):
        chunks = re.findall(rb"data: (\{.*\})\n", text)
        assert len(chunks) >= 4
        for chunk in chunks:
            strictly(chunk, kind)


def test_facts_are_those_of_the_document() -> None:
    schema = DOCUMENT["components"]["schemas"]["Facts"]
    assert set(schema["properties"]) == set(Facts.__struct_fields__)
