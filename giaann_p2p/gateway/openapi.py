"""The OpenAPI document, made from the operations and from the types that decode their bodies."""

from functools import cache
from typing import Any

import msgspec

from giaann_p2p import __version__
from giaann_p2p.gateway.failures import Failure
from giaann_p2p.gateway.operations import EVENT_STREAM, OPERATIONS, Operation

_REF = "#/components/schemas/{name}"
_ALWAYS = {
    400: "The request is wrong; `param` names the field.",
    401: "The key is missing or wrong.",
    403: "Not allowed: a page of another site, or a gateway that teaches nothing.",
    408: "The body did not come in time.",
    413: "The body is too long.",
    421: "Host is not a name of this gateway.",
    500: "The gateway failed; its log says why.",
    503: "Not now; Retry-After says when.",
}
_SOME = {404: "Not found.", 429: "Too many at once; Retry-After says when."}
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": list(Failure(500, "", "").body["error"]),
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
        }
    },
}

_ERROR_SCHEMA = {"$ref": _REF.format(name="Error")}
_STREAM = "Server-sent events, each of which is one of these; `data` is JSON, but for [DONE]."


@cache
def document() -> bytes:
    """Return the OpenAPI document as JSON."""
    types = [kind for one in OPERATIONS for kind in _types(one)]
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
    by_type = dict(zip(map(repr, types), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in OPERATIONS:
        paths.setdefault(one.path, {})[one.method] = _operation(one, by_type)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "giaann gateway",
                "version": __version__,
                "description": "A swarm or a brain over HTTP, with OpenAI's interface below /v1.",
            },
            "paths": paths,
            "components": {
                "schemas": {**components, "Error": _ERROR},
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{}, {"key": []}],
        }
    )


def _types(one: Operation) -> list[Any]:
    """Return the types that an operation takes and returns."""
    found = (one.takes, one.gives, one.chunk, *one.events.values())
    return [kind for kind in found if kind is not None]


def _operation(one: Operation, by_type: dict[str, Any]) -> dict[str, Any]:
    failures = _ALWAYS | {status: _SOME[status] for status in one.failures}
    found: dict[str, Any] = {
        "summary": one.summary,
        "operationId": f"{one.method}{one.path.translate(_PLAIN)}",
        "responses": {
            "200": {"description": "Success.", "content": _content(one, by_type)},
            **{str(status): _failure(text) for status, text in sorted(failures.items())},
        },
    }
    if parameters := _parameters(one):
        found["parameters"] = parameters
    if one.takes is not None:
        body: dict[str, Any] = {"schema": by_type[repr(one.takes)]}
        if one.request is not None:
            body["example"] = one.request
        content = {"application/json": body}
        content |= {media: {"schema": schema} for media, schema in one.uploads.items()}
        found["requestBody"] = {"required": True, "content": content}
    return found


_PLAIN = str.maketrans({"/": "_", "{": None, "}": None, ".": "_"})


def _content(one: Operation, by_type: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "string"} if one.gives is None else by_type[repr(one.gives)]
    told: dict[str, Any] = {"schema": schema}
    if one.reply is not None:
        told["example"] = one.reply
    content = {} if one.events else {one.media: told}
    events = [_event(by_type[repr(kind)], name) for name, kind in one.events.items()]
    if one.chunk is not None:
        chunk = by_type[repr(one.chunk)]
        events = [_event(each) for each in (chunk, _ERROR_SCHEMA, {"const": "[DONE]"})]
    if events:
        content[EVENT_STREAM] = {"schema": {"description": _STREAM, "oneOf": events}}
    return content


def _event(data: dict[str, Any], name: str = "") -> dict[str, Any]:
    """Return the schema of an event of a stream: its name, if it has one, and its data as JSON."""
    fields = {"event": {"const": name}} if name else {}
    fields["data"] = data
    return {"type": "object", "required": list(fields), "properties": fields}


def _failure(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": _ERROR_SCHEMA}}}


def _parameters(one: Operation) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in one.path.split("/") if part.startswith("{")]
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": dict(one.path_schema)}
        for name in names
    ]
    for name, schema in one.query.items():
        found.append({"name": name, "in": "query", "required": False, "schema": schema})
    return found
