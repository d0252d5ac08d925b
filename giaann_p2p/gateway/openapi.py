"""The OpenAPI document, made from the operations and from the types that decode their bodies."""

from functools import cache
from typing import Any

import msgspec

from giaann_p2p import __version__
from giaann_p2p.gateway.failures import Failure
from giaann_p2p.gateway.operations import OPERATIONS, Operation

_REF = "#/components/schemas/{name}"
_ALWAYS = {
    400: "The request is wrong; `param` names the field.",
    401: "The key is missing or wrong.",
    403: "Not allowed: a foreign page, or a gateway that teaches nothing.",
    408: "The body did not come in time.",
    413: "The body is too long.",
    421: "Host is no name of this gateway.",
    503: "Not now; Retry-After says when.",
}
_SOME = {404: "There is no such thing.", 429: "Too many at once; Retry-After says when."}
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


@cache
def document() -> bytes:
    """Return the OpenAPI document as JSON."""
    types = [one for each in OPERATIONS for one in (each.takes, each.gives) if one is not None]
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


def _operation(one: Operation, by_type: dict[str, Any]) -> dict[str, Any]:
    failures = _ALWAYS | {status: _SOME[status] for status in one.failures}
    found: dict[str, Any] = {
        "summary": one.summary,
        "operationId": f"{one.method}{one.path.translate(_PLAIN)}",
        "responses": {
            "200": {"description": "It worked.", "content": _content(one, by_type)},
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
    return {one.media: told}


def _failure(text: str) -> dict[str, Any]:
    schema = {"$ref": _REF.format(name="Error")}
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _parameters(one: Operation) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in one.path.split("/") if part.startswith("{")]
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    for name, schema in one.query.items():
        found.append({"name": name, "in": "query", "required": False, "schema": schema})
    return found
